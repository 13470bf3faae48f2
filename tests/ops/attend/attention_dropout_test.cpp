#include "routing/ops/attend/attention_dropout.h"

#include "routing/attention/patterns/position_patterns.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <bit>

namespace routing::attention_dropout_test {
namespace {

TEST(AttentionDropout, TensorFormAndLoopsAgreeWithTheScalarDefinition) {
  const std::vector<std::uint64_t> keys{1, 0xFFFFFFFFFFFFFFFFULL, 0x8000000080000000ULL};
  at::Tensor unit_keys = at::empty({3}, at::kLong);
  for (std::int64_t m = 0; m < 3; ++m) {
    unit_keys.data_ptr<std::int64_t>()[m] = std::bit_cast<std::int64_t>(keys[static_cast<std::size_t>(m)]);
  }
  const at::Tensor groups = at::tensor({0, 7, 100000}, at::kLong);
  const at::Tensor query_positions = at::tensor({0, 1, 2147483647, 5, 6, 7}, at::kLong).view({3, 2});
  const at::Tensor key_positions = at::arange(3 * 50, at::kLong).view({3, 50}) * 14316557;
  const double probability = 0.37;
  const at::Tensor factors =
      dropout_factors(unit_keys, groups, query_positions, key_positions, probability, at::kDouble);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    EXPECT_TRUE(dropout_factors_by_loops(unit_keys, groups, query_positions, key_positions, probability, type)
                    .equal(dropout_factors(unit_keys, groups, query_positions, key_positions, probability, type)));
  }
  int kept_count = 0;
  for (std::int64_t m = 0; m < 3; ++m) {
    for (std::int64_t t = 0; t < 2; ++t) {
      for (std::int64_t j = 0; j < 50; ++j) {
        const auto number = [](const at::Tensor& value) {
          return static_cast<std::uint32_t>(value.item<std::int64_t>());
        };
        const bool kept = dropout_keeps(keys[static_cast<std::size_t>(m)], number(groups[m]),
                                        number(query_positions[m][t]), number(key_positions[m][j]), probability);
        EXPECT_DOUBLE_EQ(factors[m][t][j].item<double>(), kept ? 1.0 / (1.0 - probability) : 0.0);
        kept_count += kept ? 1 : 0;
      }
    }
  }
  EXPECT_GT(kept_count, 150);
  EXPECT_LT(kept_count, 230);
}

TEST(AttentionDropout, DropsTheAskedShare) {
  const at::Tensor factors =
      dropout_factors(at::zeros({1}, at::kLong), at::zeros({1}, at::kLong), at::arange(300, at::kLong).view({1, 300}),
                      at::arange(300, at::kLong).view({1, 300}), 0.25, at::kDouble);
  // 90,000 draws: the standard deviation of the share is 0.0014.
  EXPECT_NEAR((factors == 0.0).to(at::kDouble).mean().item<double>(), 0.25, 0.006);
  EXPECT_NEAR(factors.mean().item<double>(), 1.0, 0.01);
}

// What a sequence loses follows its identity, not its place in the batch.
TEST(AttentionDropout, FollowsTheSampleThroughTheBatch) {
  const Plan plan = full_plan(self_layout(3, 2, 20), true, SelfRule::allowed);
  const at::Tensor q = support::random_tensor({3, 2, 20, 4}, 1);
  const at::Tensor order = at::tensor({2, 0, 1}, at::kLong);
  const auto run = [&](const at::Tensor& x, const at::Tensor& ids) {
    return attend(x, x, x, plan, {.dropout = {.probability = 0.5, .key = 4, .sample_ids = ids}}).output;
  };
  const at::Tensor ids = at::tensor({10, 11, 12}, at::kLong);
  const at::Tensor straight = run(q, ids);
  const at::Tensor shuffled = run(q.index_select(0, order), ids.index_select(0, order));
  EXPECT_TRUE(at::allclose(shuffled, straight.index_select(0, order), 0.0, 1e-12));
  EXPECT_FALSE(at::allclose(run(q, ids + 1), straight));
  EXPECT_FALSE(at::allclose(
      attend(q, q, q, plan, {.dropout = {.probability = 0.5, .key = 5, .sample_ids = ids}}).output, straight));
}

}  // namespace
}  // namespace routing::attention_dropout_test
