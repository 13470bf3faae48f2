// The gated activation against std::tanh in double, tails and threads.
#include "routing/ops/dense/geglu.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace routing::geglu_test {
namespace {

double gelu(double g) {
  return 0.5 * g * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (g + 0.044715 * g * g * g)));
}

TEST(Geglu, HandWorkedValues) {
  const at::Tensor result = geglu(at::tensor({0.0F, 1.0F, -1.0F}), at::tensor({5.0F, 2.0F, 1.0F}));
  EXPECT_EQ(result[0].item<float>(), 0.0F);
  EXPECT_NEAR(result[1].item<float>(), 2.0 * 0.841192, 1e-5);
  EXPECT_NEAR(result[2].item<float>(), -0.158808, 1e-5);
}

TEST(Geglu, EqualsTanhInDoubleForEveryTail) {
  for (const std::int64_t count : {1, 3, 15, 16, 17, 1000, 40001}) {
    const at::Tensor gate = at::linspace(-12.0, 12.0, count);
    const at::Tensor value = at::linspace(3.0, -2.0, count);
    const at::Tensor result = geglu(gate, value);
    for (std::int64_t i = 0; i < count; ++i) {
      const double g = gate.data_ptr<float>()[i];
      const double expected = gelu(g) * value.data_ptr<float>()[i];
      ASSERT_NEAR(result.data_ptr<float>()[i], expected, 4e-7 * std::max(1.0, std::abs(expected))) << g;
    }
  }
}

TEST(Geglu, LargeInputsStayFinite) {
  const at::Tensor gate = at::tensor({1e4F, -1e4F, 300.0F, -300.0F}).requires_grad_(true);
  const at::Tensor value = at::tensor({1.0F, 1.0F, 1.0F, 1.0F}).requires_grad_(true);
  const at::Tensor result = geglu(gate, value);
  result.sum().backward();
  EXPECT_EQ(result[0].item<float>(), 1e4F);
  EXPECT_NEAR(result[1].item<float>(), 0.0F, 1e-30);
  EXPECT_TRUE(at::isfinite(gate.grad()).all().item<bool>());
  EXPECT_TRUE(at::isfinite(value.grad()).all().item<bool>());
}

TEST(Geglu, GradientEqualsThatOfTheTensorFormulaInDouble) {
  const at::Tensor gate = at::linspace(-4.0, 4.0, 333).requires_grad_(true);
  const at::Tensor value = at::linspace(2.0, -1.0, 333).requires_grad_(true);
  const at::Tensor gate_double = gate.detach().to(at::kDouble).requires_grad_(true);
  const at::Tensor value_double = value.detach().to(at::kDouble).requires_grad_(true);
  const at::Tensor weights = at::linspace(0.5, 1.5, 333);
  (geglu(gate, value) * weights).sum().backward();
  (geglu(gate_double, value_double) * weights).sum().backward();
  EXPECT_TRUE(at::allclose(gate.grad().to(at::kDouble), gate_double.grad(), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(value.grad().to(at::kDouble), value_double.grad(), 1e-5, 1e-6));
}

TEST(Geglu, BitsDoNotDependOnTheNumberOfThreads) {
  const at::Tensor gate = at::randn({100001});
  const at::Tensor value = at::randn({100001});
  const int before = num_threads();
  set_num_threads(1);
  const at::Tensor one = geglu(gate, value);
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_TRUE(at::equal(one, geglu(gate, value)));
  }
  set_num_threads(before);
}

TEST(Geglu, ShapesThatDifferAreRefused) {
  EXPECT_THROW(geglu(at::zeros({2}), at::zeros({3})), InputError);
}

}  // namespace
}  // namespace routing::geglu_test
