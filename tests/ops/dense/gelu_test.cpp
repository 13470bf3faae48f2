// The activation of feed-forward layers of the kind gelu against std::erf in double, tails and threads.
#include "routing/ops/dense/gelu.h"

#include "routing/core/parallel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace routing::gelu_test {
namespace {

TEST(Gelu, HandWorkedValues) {
  const at::Tensor result = routing::gelu(at::tensor({0.0F, 1.0F, -1.0F, 2.0F}));
  EXPECT_EQ(result[0].item<float>(), 0.0F);
  EXPECT_NEAR(result[1].item<float>(), 0.8413447, 1e-6);  // Phi(1)
  EXPECT_NEAR(result[2].item<float>(), -0.1586553, 1e-6);
  EXPECT_NEAR(result[3].item<float>(), 2.0 * 0.9772499, 1e-6);
}

TEST(Gelu, EqualsErfInDoubleForEveryTail) {
  for (const std::int64_t count : {1, 3, 15, 16, 17, 1000, 40001}) {
    const at::Tensor input = at::linspace(-12.0, 12.0, count);
    const at::Tensor result = routing::gelu(input);
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = input.data_ptr<float>()[i];
      const double expected = 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
      ASSERT_NEAR(result.data_ptr<float>()[i], expected, 5e-7 * std::max(1.0, std::abs(expected))) << x;
    }
  }
}

TEST(Gelu, GradientEqualsThatOfTheTensorFormulaInDouble) {
  const at::Tensor input = at::linspace(-6.0, 6.0, 333).requires_grad_(true);
  const at::Tensor in_double = input.detach().to(at::kDouble).requires_grad_(true);
  const at::Tensor weights = at::linspace(0.5, 1.5, 333);
  (routing::gelu(input) * weights).sum().backward();
  (routing::gelu(in_double) * weights).sum().backward();
  EXPECT_TRUE(at::allclose(input.grad().to(at::kDouble), in_double.grad(), 1e-5, 1e-6));
}

TEST(Gelu, LargeInputsStayFinite) {
  const at::Tensor input = at::tensor({1e4F, -1e4F}).requires_grad_(true);
  const at::Tensor result = routing::gelu(input);
  result.sum().backward();
  EXPECT_EQ(result[0].item<float>(), 1e4F);
  EXPECT_NEAR(result[1].item<float>(), 0.0F, 1e-30);
  EXPECT_TRUE(at::isfinite(input.grad()).all().item<bool>());
}

TEST(Gelu, BitsDoNotDependOnTheNumberOfThreads) {
  const at::Tensor input = at::randn({100001});
  const int before = num_threads();
  set_num_threads(1);
  const at::Tensor one = routing::gelu(input);
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_TRUE(at::equal(one, routing::gelu(input)));
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace routing::gelu_test
