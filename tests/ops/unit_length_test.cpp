// Vectors of unit length: by hand, by finite differences, and whatever stands beside them.
#include "routing/ops/unit_length.h"

#include "routing/core/error.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

namespace routing::unit_length_test {
namespace {

using support::random_tensor;

TEST(UnitLength, DividesByTheLength) {
  const at::Tensor x = at::tensor({3.0, 4.0, 0.0, 0.0, -2.0, 0.0}, at::kDouble).view({3, 2});
  const at::Tensor expected = at::tensor({0.6, 0.8, 0.0, 0.0, -1.0, 0.0}, at::kDouble).view({3, 2});
  EXPECT_TRUE(at::allclose(unit_length(x), expected, 0.0, 1e-15));
}

TEST(UnitLength, AVectorDoesNotFeelItsNeighbours) {
  const at::Tensor x = random_tensor({2, 3, 70, 37}, 1, at::kFloat);
  const at::Tensor all = unit_length(x.transpose(1, 2));
  for (std::int64_t token = 0; token < 70; token += 13) {
    EXPECT_TRUE(at::equal(unit_length(x.narrow(2, token, 1)).transpose(1, 2), all.narrow(1, token, 1)));
  }
  EXPECT_TRUE(at::allclose(all, x.transpose(1, 2) / x.transpose(1, 2).norm(2, -1, true), 1e-6, 1e-7));
}

TEST(UnitLength, HasTheGradientOfFiniteDifferences) {
  const at::Tensor x = random_tensor({4, 5}, 2).requires_grad_(true);
  const at::Tensor weights = random_tensor({4, 5}, 3);
  (unit_length(x) * weights).sum().backward();
  const double step = 1e-6;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const at::NoGradGuard no_gradient;
    at::Tensor up = x.detach().clone();
    at::Tensor down = x.detach().clone();
    up.view(-1)[i] += step;
    down.view(-1)[i] -= step;
    const double slope = ((unit_length(up) - unit_length(down)) * weights).sum().item<double>() / (2 * step);
    EXPECT_NEAR(x.grad().view(-1)[i].item<double>(), slope, 1e-8);
  }
}

TEST(UnitLength, RefusesWholeNumbers) {
  EXPECT_THROW(unit_length(at::ones({2, 2}, at::kLong)), InputError);
}

}  // namespace
}  // namespace routing::unit_length_test
