// A layer norm by the installed kernels, without torch.
#include <cmath>
#include <cstdio>
#include <routing/kernels/dispatch/isa.h>
#include <routing/kernels/pointwise/layer_norm.h>
#include <vector>

int main() {
  const std::vector<float> rows{1.0F, 2.0F, 3.0F, 6.0F};
  std::vector<float> output(4);
  float mean = 0.0F;
  float inverse_deviation = 0.0F;
  routing::kernels::layer_norm({.rows = rows.data(), .num_rows = 1, .width = 4}, 0.0, {&mean, &inverse_deviation},
                               output.data());
  // Mean 3, variance (4 + 1 + 0 + 9) / 4.
  const double expected = 3.0 / std::sqrt(3.5);
  std::printf("%f, expected %f\n", output[3], expected);
  return std::abs(output[3] - expected) < 1e-6 ? 0 : 1;
}
