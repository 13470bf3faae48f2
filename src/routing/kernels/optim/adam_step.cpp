#include "routing/kernels/optim/adam_step.h"

#include "routing/core/parallel.h"

#include <cmath>
#include <limits>

namespace routing::kernels {
namespace {

// 448 KB of traffic a chunk: long against the cost of handing it out, short against a layer's weights.
constexpr std::int64_t kChunk = 16384;

struct FloatFactors {
  explicit FloatFactors(const AdamFactors& f)
      : gradient_scale(static_cast<float>(f.gradient_scale)),
        l2(static_cast<float>(f.l2)),
        beta1(static_cast<float>(f.beta1)),
        new_first(static_cast<float>(f.new_first)),
        beta2(static_cast<float>(f.beta2)),
        new_second(static_cast<float>(f.new_second)),
        keep(static_cast<float>(f.keep)),
        step_size(static_cast<float>(f.step_size)),
        deviation_scale(static_cast<float>(f.deviation_scale)),
        epsilon(static_cast<float>(f.epsilon)) {}

  float gradient_scale, l2, beta1, new_first, beta2, new_second, keep, step_size, deviation_scale, epsilon;
};

float without_subnormals(float number) {
  return std::abs(number) < std::numeric_limits<float>::min() ? 0.0F : number;
}

// p value, g gradient, m first and v second moment.
void step_of_range(float* __restrict p, const float* __restrict g, float* __restrict m, float* __restrict v,
                   std::int64_t count, FloatFactors f) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = f.gradient_scale * g[i] + f.l2 * p[i];
    const float first = without_subnormals(f.beta1 * m[i] + f.new_first * gradient);
    const float second = without_subnormals(f.beta2 * v[i] + f.new_second * gradient * gradient);
    m[i] = first;
    v[i] = second;
    p[i] = f.keep * p[i] - f.step_size * (first / (std::sqrt(second) * f.deviation_scale + f.epsilon));
  }
}

}  // namespace

AdamFactors adam_factors(const AdamStep& step) {
  const auto t = static_cast<double>(step.step);
  return {
      .gradient_scale = step.gradient_scale,
      .l2 = step.l2,
      .beta1 = step.beta1,
      .new_first = 1.0 - step.beta1,
      .beta2 = step.beta2,
      .new_second = 1.0 - step.beta2,
      .keep = 1.0 - step.learning_rate * step.decoupled_decay,
      .step_size = step.learning_rate / (1.0 - std::pow(step.beta1, t)),
      .deviation_scale = 1.0 / std::sqrt(1.0 - std::pow(step.beta2, t)),
      .epsilon = step.epsilon,
  };
}

void adam_step(const AdamArrays& arrays, const AdamFactors& factors) {
  const FloatFactors rounded(factors);
  parallel_for(0, arrays.count, kChunk, [&](std::int64_t first, std::int64_t last) {
    step_of_range(arrays.value + first, arrays.gradient + first, arrays.first_moment + first,
                  arrays.second_moment + first, last - first, rounded);
  });
}

}  // namespace routing::kernels
