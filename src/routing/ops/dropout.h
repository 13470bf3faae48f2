// Dropout from counters, differentiable: which elements drop depends neither on threads nor on the place in the batch.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace routing {

struct DropoutDraw {
  double probability = 0.0;      // in [0, 1); 0 returns the input itself
  std::uint64_t key = 0;         // from stream_key(seed, …, layer, step)
  at::Tensor sample_ids = {};    // int64 [batch]: the identity of each sequence; undefined means 0, 1, 2 …
  std::int64_t first_token = 0;  // position of the first token in its sequence
};

// The key of one sequence's random numbers; kernels/pointwise/dropout.h says how elements are drawn from it.
std::uint64_t dropout_sample_key(std::uint64_t key, std::int64_t sample_id);
// The keys of the sequences of a batch.
std::vector<std::uint64_t> dropout_keys(const DropoutDraw& draw, std::int64_t batch);

// input [batch, tokens, width], float or double: kept elements are divided by 1 - probability, the rest is 0. The
// gradient drops the same elements. Other devices get a mask made on the CPU.
at::Tensor dropout(const at::Tensor& input, const DropoutDraw& draw);

}  // namespace routing
