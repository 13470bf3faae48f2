// Vectors of heads, and what attention layers do with them between products: copy, scale, shift.
//
// Overlap    results must not overlap an input
// Threads    spread over parallel_for; bits do not depend on them
#pragma once

#include <cstdint>

namespace routing::kernels {

// Vectors of tokens of heads of sequences: numbers of one vector are adjacent, everything else has a stride (in
// numbers), so that a transposed projection needs no copy.
template <class Number>
struct HeadRows {
  Number* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;
};

struct HeadShape {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
  std::int64_t dim = 0;
};

// Rows that are null count as zeros.
void copy_rows(const HeadRows<const float>& from, const HeadShape& shape, const HeadRows<float>& to);

// To bfloat16, rounded to nearest even.
void round_head_rows(const HeadRows<const float>& from, const HeadShape& shape, const HeadRows<std::uint16_t>& to);

// Each row times the factor of its head.
void scale_rows(const HeadRows<const float>& from, const float* factors, const HeadShape& shape,
                const HeadRows<float>& to);

// Each row at the place of the next token: zeros at place 0, the last row is left out.
void shift_rows(const HeadRows<const float>& from, const HeadShape& shape, const HeadRows<float>& to);

// The gradient of rows that are used three times: scaled, moved and as they are. Any of the three may be null.
struct SharedRowsGradient {
  HeadRows<const float> scaled;
  HeadRows<const float> moved;
  HeadRows<const float> rows;
  const float* factors = nullptr;  // [heads], of scaled; null for 1
  std::int64_t shift = 0;          // tokens that moved rows stand behind their own, 0 or 1
};
void shared_rows_gradient(const SharedRowsGradient& gradients, const HeadShape& shape, const HeadRows<float>& sums);

// [heads]: the sum of products of all numbers of a head, over chunks of tokens in their order.
void head_products(const HeadRows<const float>& a, const HeadRows<const float>& b, const HeadShape& shape,
                   float* products);

}  // namespace routing::kernels
