// The result of a training run on standard output.
#pragma once

#include "routing/training/trainer.h"

#include <filesystem>

namespace routing {

struct ResultOptions {
  ExperimentConfig config = {};
  TokenKind kind = TokenKind::bytes;
  std::string data_label = {};  // "partial data", or nothing
  std::filesystem::path run = {};
  int ranks = 1;
  bool json = false;
};

void print_training_result(const TrainingResult& result, const ResultOptions& options);

// "2.413 bits/byte": with as many digits as are worth reading.
std::string score_text(TokenKind kind, double nats_per_token);

}  // namespace routing
