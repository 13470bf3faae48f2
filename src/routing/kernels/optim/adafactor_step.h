// One step of Adafactor (Shazeer and Stern 2018) over one parameter, without a first moment, as tensor2tensor does it.
//
// Adam keeps an average of squared gradients for every number. Adafactor keeps it for every row and for every column of
// a matrix and takes their product, scaled to the right mean, for the average of a number. With value p, gradient G, at
// the t-th step, for a matrix with row moments R and column moments C:
//
//   g   = gradient_scale G + l2 p
//   k   = 1 - t^-decay_exponent              what the averages keep: nothing at the first step, so there is no bias
//   R_i <- k R_i + (1 - k) (mean over j of g_ij^2 + 1e-30)
//   C_j <- k C_j + (1 - k) (mean over i of g_ij^2 + 1e-30)
//   u_ij = g_ij / sqrt(R_i C_j / mean(R))
//
// and for a vector with second moments v:
//
//   v_i <- k v_i + (1 - k) (g_i^2 + 1e-30)
//   u_i = g_i / sqrt(v_i)
//
// Then for both, with rms the root of the mean of squares over the whole parameter:
//
//   u <- u / max(1, rms(u) / update_clip)    as it is if update_clip is 0
//   s = learning_rate max(rms(p), 1e-3)      learning_rate alone unless relative_step
//   p <- (1 - learning_rate decoupled_decay) p - s u
//
// Weight decay in the gradient is l2. Decoupled decay goes by the learning rate as in AdamW, not by s: with relative
// steps u then moves a parameter by a share of its size, and decay shrinks it by a share of its size.
#pragma once

#include <cstdint>

namespace routing::kernels {

inline constexpr double kAdafactorSquareFloor = 1e-30;
inline constexpr double kAdafactorScaleFloor = 1e-3;

struct AdafactorStep {
  std::int64_t step = 1;  // t, from 1
  double learning_rate = 0.0;
  double decay_exponent = 0.8;
  double update_clip = 1.0;
  bool relative_step = true;
  double l2 = 0.0;
  double decoupled_decay = 0.0;
  double gradient_scale = 1.0;
};

// k above.
double adafactor_keep(const AdafactorStep& step);
// What to multiply u with, from the means of the squares of p and of the unclipped u: s / max(1, rms(u) / update_clip).
double adafactor_step_size(const AdafactorStep& step, double mean_square_value, double mean_square_update);

// Layout     value and gradient [matrices, rows, columns], row_moment [matrices, rows], column_moment [matrices,
//            columns], row-major, float32. The moments of each matrix are its own; both rms go over all of them. If
//            any size is 0 nothing happens
// Overlap    none of the arrays overlaps another
// Precision  numbers and their squares in float32, all sums in double. A gradient that is not finite, or whose square
//            is not, spoils the whole parameter
// Passes     three over the gradient (two without clipping) and two over the value (three with l2)
// Threads    tiles of fixed size, their sums added in order: the number of threads changes no bit
struct AdafactorMatrices {
  float* value = nullptr;
  const float* gradient = nullptr;
  float* row_moment = nullptr;
  float* column_moment = nullptr;
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
void adafactor_step(const AdafactorMatrices& arrays, const AdafactorStep& step);

// The same contract with `count` numbers in each array and two passes.
struct AdafactorVector {
  float* value = nullptr;
  const float* gradient = nullptr;
  float* second_moment = nullptr;
  std::int64_t count = 0;
};
void adafactor_step(const AdafactorVector& arrays, const AdafactorStep& step);

}  // namespace routing::kernels
