#include "routing/attention/patterns/rotary.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace routing::rotary_test {
namespace {

TEST(Rotary, HandWorkedAngles) {
  // Four numbers: pairs (0, 2) and (1, 3), which turn by 1 and 1/100 per position.
  const at::Tensor rows = at::tensor({1.0, 1.0, 0.0, 0.0}, at::kDouble).expand({1, 1, 3, 4});
  const at::Tensor turned = rotated(rows);
  for (std::int64_t position = 0; position < 3; ++position) {
    const auto p = static_cast<double>(position);
    const at::Tensor row = turned[0][0][position];
    EXPECT_NEAR(row[0].item<double>(), std::cos(p), 1e-12);
    EXPECT_NEAR(row[2].item<double>(), std::sin(p), 1e-12);
    EXPECT_NEAR(row[1].item<double>(), std::cos(p / 100.0), 1e-12);
    EXPECT_NEAR(row[3].item<double>(), std::sin(p / 100.0), 1e-12);
  }
}

TEST(Rotary, DotProductsKnowOffsetsOnly) {
  at::manual_seed(3);
  const at::Tensor q = at::randn({1, 1, 1, 8}, at::kDouble);
  const at::Tensor k = at::randn({1, 1, 1, 8}, at::kDouble);
  const auto product = [&](std::int64_t query, std::int64_t key) {
    const std::vector<std::int64_t> at_query{query}, at_key{key};
    return (rotated(q, at_query) * rotated(k, at_key)).sum().item<double>();
  };
  EXPECT_NEAR(product(7, 3), product(5004, 5000), 1e-9);
  EXPECT_GT(std::abs(product(7, 3) - product(7, 4)), 1e-3);
}

TEST(Rotary, ARowAloneHasTheBitsItHasAmongOthers) {
  at::manual_seed(3);
  const at::Tensor rows = at::randn({2, 3, 37, 10});
  const at::Tensor all = rotated(rows);
  for (std::int64_t token = 0; token < 37; ++token) {
    const std::vector<std::int64_t> positions{token, token};
    EXPECT_TRUE(at::equal(rotated(rows.narrow(2, token, 1), positions), all.narrow(2, token, 1))) << token;
  }
}

// Found by random configurations: caches read rows of two numbers as they stood in memory.
TEST(Rotary, RowsAreContiguousHoweverHeadsStand) {
  for (const std::int64_t dim : {2, 4, 10}) {
    const at::Tensor heads_inside = at::randn({2, 17, 3, dim}).transpose(1, 2);
    const at::Tensor turned = rotated(heads_inside);
    EXPECT_TRUE(turned.is_contiguous()) << dim;
    EXPECT_TRUE(at::equal(turned, rotated(heads_inside.contiguous()))) << dim;
  }
}

TEST(Rotary, GradientTurnsBack) {
  const at::Tensor rows = at::randn({1, 2, 5, 6}, at::kDouble).requires_grad_(true);
  const at::Tensor weights = at::randn({1, 2, 5, 6}, at::kDouble);
  (rotated(rows) * weights).sum().backward();
  // Turning is orthogonal: <R x, w> = <x, R^T w>, and R (R^T w) = w.
  EXPECT_TRUE(at::allclose(rotated(rows.grad()), weights, 0.0, 1e-12));
}

TEST(Rotary, OddRowsAndOtherCountsAreRefused) {
  EXPECT_THROW(rotated(at::zeros({1, 1, 2, 3})), InputError);
  const std::vector<std::int64_t> two{0, 1};
  EXPECT_THROW(rotated(at::zeros({1, 1, 2, 4}), two), InputError);
}

}  // namespace
}  // namespace routing::rotary_test
