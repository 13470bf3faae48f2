// The result of a training run on standard output.
#pragma once

#include "routing/training/trainer.h"

#include <filesystem>

namespace routing {

struct ResultOptions {
  ExperimentConfig config = {};
  std::filesystem::path run = {};
  bool json = false;
};

void print_training_result(const TrainingResult& result, const ResultOptions& options);

// "2.413": bits per byte with as many digits as are worth reading.
std::string in_bits(double nats_per_byte);

}  // namespace routing
