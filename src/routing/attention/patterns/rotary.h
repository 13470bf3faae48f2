// Rotary positions (Su et al. 2021): a vector is turned by angles that grow with its position, so that the dot product
// of two of them knows how far apart they are and nothing else of where they stand.
//
//   for j < dim/2, at position p:  a = p * 10000^(-2 j / dim)
//   (x_j, x_{j + dim/2}) -> (x_j cos a - x_{j + dim/2} sin a,  x_{j + dim/2} cos a + x_j sin a)
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

namespace routing {

// rows [batch, heads, tokens, dim], dim even; token t of sequence b stands at first_positions[b] + t, or at t where
// none are given. Contiguous, and differentiable. Bits of a row depend on the row and its position alone.
at::Tensor rotated(const at::Tensor& rows, std::span<const std::int64_t> first_positions = {});

}  // namespace routing
