// Layer normalisation of rows.
//
//   y = (x - mean) / sqrt(variance + eps) * gain + bias        variance: the mean squared distance from the mean
//
// A row of y and of the gradient of x depends on its row alone. Gradients of gain and bias are summed over chunks of
// 256 rows in the order of memory, then chunk after chunk: they depend on the rows, not on the threads.
//
// Layout     float32; numbers of a row are adjacent. Input rows and their gradient stand where their RowPlaces say, so
//            that the heads of a projection need no copy; outputs and their gradient are contiguous. gain, bias
//            [width], null for 1 and 0
// Overlap    outputs must not overlap an input
// Threads    spread over parallel_for
#pragma once

#include <cstdint>

namespace routing::kernels {

// Row r is token r % tokens of head r / tokens % heads of sequence r / (tokens * heads); strides count numbers.
struct RowPlaces {
  std::int64_t heads = 1;
  std::int64_t tokens = 0;  // 0: rows are contiguous, whatever the strides
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t token_stride = 0;
};

struct NormInputs {
  const float* rows = nullptr;  // [num_rows, width]
  std::int64_t num_rows = 0;
  std::int64_t width = 0;
  RowPlaces places = {};
  const float* gain = nullptr;
  const float* bias = nullptr;
  // For the gradient without gain and bias: rows are what layer_norm gave, contiguous. Then what went into it need not
  // be kept; places still say in which order rows are walked through.
  bool normalised = false;
};

// What backward needs of each row.
struct NormStatistics {
  float* mean = nullptr;               // [num_rows]; the gradient of normalised rows does not read it
  float* inverse_deviation = nullptr;  // [num_rows]: 1 / sqrt(variance + eps)
};

void layer_norm(const NormInputs& inputs, double eps, const NormStatistics& statistics, float* outputs);

// Null pointers are skipped.
struct NormGradients {
  float* rows = nullptr;  // [num_rows, width]
  float* gain = nullptr;  // [width]
  float* bias = nullptr;  // [width]
  RowPlaces places = {};  // of rows
  // [num_rows, width], contiguous, or null: added to the gradient of the rows, for inputs that are also used as they
  // are.
  const float* more = nullptr;
};

void layer_norm_gradient(const NormInputs& inputs, const NormStatistics& statistics, const float* outputs_gradient,
                         const NormGradients& gradients);

}  // namespace routing::kernels
