// Floating-point operations that a result needs, not those that an implementation happens to make: a product and a sum
// are two, masked pairs, padding, softmax and planning count nothing.
#pragma once

#include <cstdint>

namespace routing::bench {

// Per attended pair (query, key, group): q . k is 2 dim, adding p v is 2 value_dim.
constexpr double attention_forward_flops(std::int64_t pairs, std::int64_t dim, std::int64_t value_dim) {
  return 2.0 * static_cast<double>(pairs) * static_cast<double>(dim + value_dim);
}

// Five products: scores again, dP = dO . v, dV, dK and dQ. Three of them are over dim, two over value_dim.
constexpr double attention_backward_flops(std::int64_t pairs, std::int64_t dim, std::int64_t value_dim) {
  return 2.0 * static_cast<double>(pairs) * static_cast<double>(3 * dim + 2 * value_dim);
}

// A product of [rows, in] and [in, out]; a backward pass makes two of the same size.
constexpr double product_flops(std::int64_t rows, std::int64_t in, std::int64_t out) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

}  // namespace routing::bench
