// Dense products whose bits depend neither on the number of rows nor on the number of threads.
//
//   dense_product      outputs = rows . B (+ bias, then ReLU)      B = W^T (forward) or W (gradient of the rows)
//   weight_gradient    dW = dY^T . X,  db = column sums of dY
//
// Products are cut into blocks of 64 rows and panels of columns; each block runs a oneDNN matmul made for one thread, a
// last block filled up with zero rows runs the same one. Few rows, as in decoding, are computed one by one at the speed
// of reading the weights, where that has been seen to give the very same bits. A weight gradient sums over the rows in
// a fixed order.
//
// Layout     row-major, contiguous, float32, but for rows that somebody rounded to bfloat16 already; W is [out, in]
// Overlap    outputs must not overlap an input
// Precision  sums in float32. With bf16, factors (not bias or outputs) are first rounded to bfloat16, to nearest even.
//            Processors without bfloat16 arithmetic compute the same products in float32.
// Threads    spread over parallel_for
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace routing::kernels {

enum class DenseType { fp32, bf16 };

struct WeightShape {
  std::int64_t out = 0;
  std::int64_t in = 0;
};

// The right factor of a product in the layout that the matmul likes best. Copies share their contents.
class PackedMatrix {
 public:
  struct Contents;

  // B = W^T, for outputs = inputs . W^T.
  static PackedMatrix for_forward(const float* weight, WeightShape shape, DenseType type);
  // B = W, for the gradient of the inputs.
  static PackedMatrix for_data_gradient(const float* weight, WeightShape shape, DenseType type);

  std::int64_t depth() const;    // rows of B
  std::int64_t columns() const;  // columns of B
  std::size_t bytes() const;
  const Contents& contents() const { return *contents_; }

 private:
  std::shared_ptr<const Contents> contents_;
};

// Rows of numbers: one of the two pointers is set, or none. bfloat16 is for products of that type: rounding it again
// would change nothing, so whoever needs rows more than once may round them once and keep half of the bytes.
struct DenseRows {
  const float* floats = nullptr;
  const std::uint16_t* halves = nullptr;

  DenseRows() = default;
  DenseRows(std::nullptr_t) {}                    // NOLINT(google-explicit-constructor): no rows
  DenseRows(const float* rows) : floats(rows) {}  // NOLINT(google-explicit-constructor): rows, as they mostly come
  explicit DenseRows(const std::uint16_t* rows) : halves(rows) {}

  bool given() const { return floats != nullptr || halves != nullptr; }
  // The rows from this number on.
  DenseRows from(std::int64_t offset) const {
    DenseRows rest;
    if (floats != nullptr) rest.floats = floats + offset;
    if (halves != nullptr) rest.halves = halves + offset;
    return rest;
  }
};

struct DenseOptions {
  const float* bias = nullptr;  // [columns], or null
  bool relu = false;
  bool accumulate = false;  // add to what outputs holds; not together with bias or relu
  // [num_rows, columns], what a ReLU gave: outputs become 0 where these are not above 0, and `passed_factor` times
  // themselves elsewhere. For gradients on their way back through it. Not together with accumulate.
  DenseRows relu_outputs = {};
  float passed_factor = 1.0F;
};

// rows [num_rows, depth] -> outputs [num_rows, columns]. A row of outputs depends on its row alone, wherever it stands.
void dense_product(const DenseRows& rows, std::int64_t num_rows, const PackedMatrix& matrix,
                   const DenseOptions& options, float* outputs);

// Whether few rows of this product are computed one by one. If not, each call costs as much as 64 rows in the panels
// concerned: loops for the processor are missing, or oneDNN adds up in an order that they do not know. Options with
// accumulate or relu_outputs never are. The first call for a shape takes milliseconds to find out, in this function or
// in dense_product.
bool rows_match_blocks(const PackedMatrix& matrix, const DenseOptions& options);

struct GradientOptions {
  DenseType type = DenseType::fp32;
  bool accumulate = false;  // add to what the gradients hold
};

struct GradientInputs {
  const float* outputs_gradient = nullptr;  // dY [num_rows, out]
  DenseRows inputs;                         // X [num_rows, in]
  std::int64_t num_rows = 0;
};

struct WeightGradients {
  float* weight = nullptr;  // [out, in], or null
  float* bias = nullptr;    // [out], or null; summed in float32, never rounded to bfloat16
};

void weight_gradient(const GradientInputs& inputs, WeightShape shape, const GradientOptions& options,
                     const WeightGradients& gradients);

}  // namespace routing::kernels
