#include "routing/kernels/pointwise/head_rows.h"

#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/lanes.h"
#include "routing/kernels/dispatch/simd_level.h"
#include "routing/kernels/pointwise/bfloat16_bits.h"

#include <algorithm>
#include <vector>

namespace routing::kernels {
namespace {

// Tokens that a thread takes together.
constexpr std::int64_t kChunkTokens = 64;

struct TokenPlace {
  std::int64_t sequence, head, token;
};

template <class Number>
[[gnu::always_inline]] inline Number* row_at(const HeadRows<Number>& rows, const TokenPlace& place) {
  return rows.data + place.sequence * rows.batch_stride + place.head * rows.head_stride + place.token * rows.row_stride;
}

// body(place) for all rows, those of a token together: where heads stand inside of tokens, that is the order of memory.
template <class Body>
void for_each_row(const HeadShape& shape, const Body& body) {
  const std::int64_t chunks = (shape.tokens + kChunkTokens - 1) / kChunkTokens;
  parallel_for(0, shape.batch * chunks, 1, [&](std::int64_t task, std::int64_t) {
    const std::int64_t sequence = task / chunks;
    const std::int64_t first = task % chunks * kChunkTokens;
    const std::int64_t last = std::min(shape.tokens, first + kChunkTokens);
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t token = first; token < last; ++token) {
        for (std::int64_t head = 0; head < shape.heads; ++head) body(TokenPlace{sequence, head, token});
      }
    });
  });
}

}  // namespace

void copy_rows(const HeadRows<const float>& from, const HeadShape& shape, const HeadRows<float>& to) {
  for_each_row(
      shape, [&](const TokenPlace& place) __attribute__((always_inline)) {
        float* row = row_at(to, place);
        if (from.data == nullptr) {
          for (std::int64_t d = 0; d < shape.dim; ++d) row[d] = 0.0F;
          return;
        }
        const float* numbers = row_at(from, place);
        for (std::int64_t d = 0; d < shape.dim; ++d) row[d] = numbers[d];
      });
}

void round_head_rows(const HeadRows<const float>& from, const HeadShape& shape, const HeadRows<std::uint16_t>& to) {
  for_each_row(
      shape, [&](const TokenPlace& place) __attribute__((always_inline)) {
        const float* numbers = row_at(from, place);
        std::uint16_t* row = row_at(to, place);
        for (std::int64_t d = 0; d < shape.dim; ++d)
          row[d] = static_cast<std::uint16_t>(rounded_bits(numbers[d]) >> 16U);
      });
}

void scale_rows(const HeadRows<const float>& from, const float* factors, const HeadShape& shape,
                const HeadRows<float>& to) {
  for_each_row(
      shape, [&](const TokenPlace& place) __attribute__((always_inline)) {
        const float* numbers = row_at(from, place);
        float* row = row_at(to, place);
        const float factor = factors[place.head];
        for (std::int64_t d = 0; d < shape.dim; ++d) row[d] = numbers[d] * factor;
      });
}

void shift_rows(const HeadRows<const float>& from, const HeadShape& shape, const HeadRows<float>& to) {
  for_each_row(
      shape, [&](const TokenPlace& place) __attribute__((always_inline)) {
        float* row = row_at(to, place);
        if (place.token == 0) {
          for (std::int64_t d = 0; d < shape.dim; ++d) row[d] = 0.0F;
          return;
        }
        const float* numbers = row_at(from, {place.sequence, place.head, place.token - 1});
        for (std::int64_t d = 0; d < shape.dim; ++d) row[d] = numbers[d];
      });
}

void shared_rows_gradient(const SharedRowsGradient& gradients, const HeadShape& shape, const HeadRows<float>& sums) {
  for_each_row(
      shape, [&](const TokenPlace& place) __attribute__((always_inline)) {
        float* sum = row_at(sums, place);
        const float factor = gradients.factors == nullptr ? 1.0F : gradients.factors[place.head];
        if (gradients.scaled.data != nullptr) {
          const float* scaled = row_at(gradients.scaled, place);
          for (std::int64_t d = 0; d < shape.dim; ++d) sum[d] = scaled[d] * factor;
        } else {
          for (std::int64_t d = 0; d < shape.dim; ++d) sum[d] = 0.0F;
        }
        if (gradients.moved.data != nullptr && place.token + gradients.shift < shape.tokens) {
          const float* moved = row_at(gradients.moved, {place.sequence, place.head, place.token + gradients.shift});
          for (std::int64_t d = 0; d < shape.dim; ++d) sum[d] += moved[d];
        }
        if (gradients.rows.data != nullptr) {
          const float* rows = row_at(gradients.rows, place);
          for (std::int64_t d = 0; d < shape.dim; ++d) sum[d] += rows[d];
        }
      });
}

void head_products(const HeadRows<const float>& a, const HeadRows<const float>& b, const HeadShape& shape,
                   float* products) {
  const std::int64_t chunks = (shape.tokens + kChunkTokens - 1) / kChunkTokens;
  std::vector<float> partial(static_cast<std::size_t>(shape.batch * chunks * shape.heads), 0.0F);
  parallel_for(0, shape.batch * chunks, 1, [&](std::int64_t task, std::int64_t) {
    const std::int64_t first = task % chunks * kChunkTokens;
    const std::int64_t last = std::min(shape.tokens, first + kChunkTokens);
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t token = first; token < last; ++token) {
        for (std::int64_t head = 0; head < shape.heads; ++head) {
          const float* left = row_at(a, {task / chunks, head, token});
          const float* right = row_at(b, {task / chunks, head, token});
          partial[static_cast<std::size_t>(task * shape.heads + head)] +=
              lane_sum(shape.dim, [&](std::int64_t d) { return left[d] * right[d]; });
        }
      }
    });
  });
  std::fill_n(products, shape.heads, 0.0F);
  for (std::int64_t task = 0; task < shape.batch * chunks; ++task) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      products[head] += partial[static_cast<std::size_t>(task * shape.heads + head)];
    }
  }
}

}  // namespace routing::kernels
