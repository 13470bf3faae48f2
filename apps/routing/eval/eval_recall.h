// `routing eval` of a model of the recall task: answers by distance, and the loss beside the least possible one.
#pragma once

#include "routing/config/experiment.h"
#include "routing/ops/dense/linear.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace routing {

struct RecallEvaluation {
  std::filesystem::path model = {};
  std::string split = "test";
  std::int64_t sequences = 64;
  std::int64_t batch_size = 4;
  std::int64_t sequence_length = 0;  // 0: that of training
  MatmulPrecision precision = MatmulPrecision::fp32;
  bool json = false;
};

// Prints the result and returns the exit code.
int eval_recall(const RecallEvaluation& asked, const ExperimentConfig& config);

}  // namespace routing
