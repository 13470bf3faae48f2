// Texts that a model reads segment by segment.
#pragma once

#include "routing/model/model_memory.h"
#include "routing/model/sequence_model.h"
#include "support/small_experiment.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// A small model whose layers remember so many tokens before segments of train.sequence_length.
inline ExperimentConfig memory_experiment(const std::string& content, std::int64_t segment, std::int64_t length) {
  ExperimentConfig config = odd_experiment(content, segment);
  config.name = "memory-" + content;
  std::get<LocalPattern>(config.patterns.local.pattern).window = std::min<std::int64_t>(40, segment + length);
  config.train.order = DataOrder::contiguous;
  config.memory.length = length;
  return config;
}

struct Segments {
  std::int64_t tokens = 0;  // of each but perhaps the last
  std::int64_t memory = 0;
};

// The logits of a text [streams, n] from one segment after the other.
inline at::Tensor logits_by_segments(SequenceModel& model, const at::Tensor& text, const Segments& segments,
                                     MatmulPrecision precision = MatmulPrecision::fp32) {
  ModelMemory memory{.length = segments.memory};
  std::vector<at::Tensor> logits;
  for (std::int64_t first = 0; first < text.size(1); first += segments.tokens) {
    const std::int64_t count = std::min(segments.tokens, text.size(1) - first);
    logits.push_back(model.logits(text.narrow(1, first, count), {.precision = precision, .memory = &memory}));
  }
  return at::cat(logits, 1);
}

}  // namespace routing
