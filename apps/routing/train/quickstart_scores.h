// What `routing quickstart` says about the model it trained: bits per byte beside compressors, and text from it.
#pragma once

#include "lab/measure/ratio_interval.h"
#include "routing/config/experiment.h"
#include "routing/training/run_directory.h"
#include "train/training_display.h"

#include <cstdint>
#include <string>

namespace routing {

inline constexpr std::int64_t kPromptBytes = 400;  // held-out text that the sample goes on from

struct QuickstartScores {
  std::int64_t bytes = 0;            // scored by the model and compressed by the others
  RatioInterval bits_per_byte = {};  // of the model, with its interval over windows
  double gzip = 0.0;
  double xz = 0.0;
  std::string data_label = {};
  std::string sample = {};
};

// Of the best checkpoint of a run on the beginning of its test part.
QuickstartScores quickstart_scores(const ExperimentConfig& config, const RunDirectory& run, TrainingDisplay& display);

}  // namespace routing
