// Counter-based dropout of attention probabilities.
#pragma once

#include "routing/ops/attend/attend.h"

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

// The key of one unit's random numbers.
std::uint64_t dropout_unit_key(std::uint64_t key, std::int64_t sample_id, std::int64_t head);

// Is this probability kept? The scalar definition; kernels call it, the tensor form below must agree with it.
bool dropout_keeps(std::uint64_t unit_key, std::uint32_t group, std::uint32_t query_position,
                   std::uint32_t key_position, double probability);

// What the probabilities of tiles are multiplied with: 1 / (1 - probability) where kept, else 0.
//   unit_keys [m] int64 (the bits of dropout_unit_key), groups [m], query_positions [m, t], key_positions [m, j] int64
//   -> [m, t, j] of the given type, on the same device
at::Tensor dropout_factors(const at::Tensor& unit_keys, const at::Tensor& groups, const at::Tensor& query_positions,
                           const at::Tensor& key_positions, double probability, at::ScalarType type);
// The same on the CPU, without the hundred operations on tensors that Philox takes.
at::Tensor dropout_factors_by_loops(const at::Tensor& unit_keys, const at::Tensor& groups,
                                    const at::Tensor& query_positions, const at::Tensor& key_positions,
                                    double probability, at::ScalarType type);

// dropout_unit_key for every unit of a batch, as int64 [batch * heads] on the CPU.
at::Tensor dropout_unit_keys(const AttentionDropout& dropout, std::int64_t batch, std::int64_t heads);

}  // namespace routing
