// What a model file says before its weights are read. Knows no torch.
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace routing {

struct ModelHeader {
  std::filesystem::path path = {};
  std::map<std::string, std::string> metadata = {};  // see routing/model/weights.h
  std::int64_t parameters = 0;                       // what training learns; centroids and other buffers do not count

  // Of the metadata; empty if it is not there.
  std::string text(const std::string& key) const;
  // A FileError if the file holds none, or a wrong one.
  ExperimentConfig config() const;
};

// Throws a FileError for what is not a whole safetensors file.
ModelHeader read_model_header(const std::filesystem::path& path);

}  // namespace routing
