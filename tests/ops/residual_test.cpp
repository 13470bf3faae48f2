#include "routing/ops/residual.h"

#include "routing/core/error.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace routing::residual_test {
namespace {

using support::random_tensor;

const at::TensorOptions kDoubles{at::kDouble};

TEST(ResidualSum, AddsAndHandsTheGradientToBoth) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor x = at::tensor({1.0, 2.0, 3.0}, kDoubles).to(type).view({1, 3}).requires_grad_();
    const at::Tensor y = at::tensor({0.5, -2.0, 7.0}, kDoubles).to(type).view({1, 3}).requires_grad_();
    const at::Tensor sum = residual_sum(x, y);
    EXPECT_TRUE(at::equal(sum.detach(), at::tensor({1.5, 0.0, 10.0}, kDoubles).to(type).view({1, 3})));
    const at::Tensor d = at::tensor({4.0, 5.0, 6.0}, kDoubles).to(type).view({1, 3});
    for (const at::Tensor& gradient : torch::autograd::grad({sum}, {x, y}, {d})) EXPECT_TRUE(at::equal(gradient, d));
  }
  const at::Tensor many = random_tensor({70, 1000}, 1).to(at::kFloat);
  const at::Tensor others = random_tensor({70, 1000}, 2).to(at::kFloat);
  EXPECT_TRUE(at::equal(residual_sum(many, others), many + others));
  EXPECT_TRUE(at::equal(residual_sum(many.t(), others.t()), (many + others).t())) << "any strides";
  EXPECT_THROW(residual_sum(many, others.t()), InputError);
}

}  // namespace
}  // namespace routing::residual_test
