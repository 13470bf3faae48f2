// Batches of random tokens, numbered as training numbers them, and copies of tensors to hold them against.
#pragma once

#include "routing/model/sequence_model.h"
#include "support/small_experiment.h"

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

namespace routing {

// All batches of one step.
inline std::vector<TokenBatch> batches_of(const ExperimentConfig& config, std::int64_t step) {
  std::vector<TokenBatch> batches;
  for (std::int64_t i = 0; i < config.train.accumulation; ++i) {
    const std::int64_t number = step * config.train.accumulation + i;
    batches.push_back({.tokens = random_tokens(config.train.batch_size, config.train.sequence_length,
                                               config.model.vocab_size, static_cast<std::uint64_t>(number)),
                       .sample_ids = at::arange(config.train.batch_size, at::kLong) + number * config.train.batch_size,
                       .index = number});
  }
  return batches;
}

inline std::map<std::string, at::Tensor> copies(const std::map<std::string, at::Tensor>& tensors) {
  std::map<std::string, at::Tensor> result;
  for (const auto& [name, value] : tensors) result[name] = value.clone();
  return result;
}

}  // namespace routing
