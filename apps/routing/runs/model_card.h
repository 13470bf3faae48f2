// The README.md of an exported model: what it is, what its figures are worth, how to use it.
#pragma once

#include "lab/runs/model_export.h"
#include "lab/runs/run_history.h"
#include "routing/training/run_directory.h"

#include <optional>
#include <string>

namespace routing {

struct ModelCard {
  std::string title = {};
  ExportSource source = {};
  std::optional<TrainerState> trained = std::nullopt;  // of the checkpoint, where that is known
  RunHistory history = {};                             // empty where there are no metrics
  std::string date = {};
};

// Markdown. Names no path; the data only by the name of its file or folder.
std::string model_card(const ModelCard& card);

}  // namespace routing
