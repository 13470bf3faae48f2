// Models to and from the checkpoints of the authors' TensorFlow code (authors_variables.h has the names).
#pragma once

#include "routing/interchange/bundle/tensor_bundle.h"
#include "routing/model/transformer.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace routing {

struct AuthorsModel {
  Transformer model = nullptr;                      // in evaluation mode
  std::optional<std::int64_t> step = std::nullopt;  // that of training, if the checkpoint says it
  std::vector<std::string> skipped = {};            // variables that are no weights
  std::vector<std::string> folded = {};             // variables whose layer is part of the next one here
};

// The model of this configuration with the checkpoint's weights. Every variable is used, is no weight, or is an error:
// the FileError names all that are missing, too many, or of another type or shape.
AuthorsModel read_authors_checkpoint(const std::filesystem::path& prefix, const ExperimentConfig& config);

// Writes the weights as the authors' code would read them, and what centroids keep beside them (thresholds, updates)
// under names that it passes over: reading gives the same bits again.
void write_authors_checkpoint(const std::filesystem::path& prefix, const SequenceModel& model);

}  // namespace routing
