// A plan of more pairs than 31 bits count. All logits are equal, so that every answer is known: a query averages what
// it sees.
#include "routing/ops/attend/attend.h"
#include "routing/ops/attend/visibility.h"

#include <gtest/gtest.h>

namespace routing::attend_many_pairs_test {
namespace {

// Each of them reads itself and those before: 2^31 + 2^15 pairs.
constexpr std::int64_t kTokens = 65'536;
constexpr std::int64_t kWidth = 16;

Plan everything_before() {
  Plan plan;
  plan.batch = 1;
  plan.heads = 1;
  plan.num_queries = kTokens;
  plan.num_keys = kTokens;
  plan.query_order = at::arange(kTokens, at::kInt);
  plan.key_order = plan.query_order;
  plan.groups = at::tensor({std::int64_t{0}, kTokens, std::int64_t{0}, kTokens}, at::kLong).view({1, 4});
  plan.unit_offsets = at::tensor({std::int64_t{0}, std::int64_t{1}}, at::kLong);
  return complete_plan(plan);
}

TEST(AttendManyPairs, AQueryAveragesWhatItSeesAndAValueGetsItsSharesBack) {
  const Plan plan = everything_before();
  EXPECT_EQ(attended_pairs(plan), kTokens * (kTokens + 1) / 2);
  const at::Tensor places = at::arange(kTokens, at::kDouble);
  const at::Tensor q = at::zeros({1, 1, kTokens, kWidth}, at::kFloat);
  const at::Tensor k = at::ones({1, 1, kTokens, kWidth}, at::kFloat);
  at::Tensor v = (places / kTokens).to(at::kFloat).view({1, 1, kTokens, 1}).repeat({1, 1, 1, kWidth});
  v.set_requires_grad(true);
  const AttendResult result = attend(q, k, v, plan, {});
  const at::Tensor averages = places / 2.0 / kTokens;
  const at::Tensor counts = places + 1.0;
  for (const std::int64_t column : {std::int64_t{0}, kWidth - 1}) {
    const at::Tensor found = result.output.detach()[0][0].select(1, column).to(at::kDouble);
    EXPECT_LT((found - averages).abs().max().item<double>(), 1e-5) << column;
  }
  EXPECT_LT((result.lse.detach()[0][0].to(at::kDouble) - counts.log()).abs().max().item<double>(), 1e-4);
  result.output.sum().backward();
  // Value j has a share of 1 / (i + 1) in every later query i.
  const at::Tensor shares = counts.reciprocal().flip(0).cumsum(0).flip(0);
  const at::Tensor gradient = v.grad()[0][0].select(1, 0).to(at::kDouble);
  EXPECT_LT(((gradient - shares) / shares).abs().max().item<double>(), 1e-3);
}

}  // namespace
}  // namespace routing::attend_many_pairs_test
