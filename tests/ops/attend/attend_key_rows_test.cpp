// Plans that say where keys stand: the results of keys at their positions, and gradients where the keys are.
#include "routing/ops/attend/attend.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

namespace routing::attend_key_rows_test {
namespace {

using support::random_tensor;

constexpr std::int64_t kTokens = 150;
constexpr std::int64_t kRows = kTokens + 3;  // some are nobody's

// Row r of what is moved is row order[r] of what was, -1 for nobody's.
struct Moved {
  Plan plan;
  at::Tensor row_of;  // int64 [tokens]: where the key of a position stands
};

Moved moved(const Plan& plan) {
  Moved result{.plan = plan, .row_of = at::empty({kTokens}, at::kLong)};
  auto* row_of = result.row_of.data_ptr<std::int64_t>();
  for (std::int64_t position = 0; position < kTokens; ++position) row_of[position] = (position * 7 + 11) % kRows;
  result.plan.num_keys = kRows;
  result.plan.key_order = plan.key_order.clone();
  result.plan.key_rows = result.row_of.index_select(0, plan.key_order.to(at::kLong)).to(at::kInt);
  result.plan = complete_plan(result.plan);
  return result;
}

at::Tensor moved_rows(const at::Tensor& rows, const at::Tensor& row_of) {
  at::Tensor result = at::full({rows.size(0), rows.size(1), kRows, rows.size(3)}, 1e6, rows.options());
  result.index_copy_(2, row_of, rows);
  return result;
}

std::vector<support::PatternCase> self_cases() {
  std::vector<support::PatternCase> cases = support::pattern_cases(AttentionKind::causal_self);
  const auto bidirectional = support::pattern_cases(AttentionKind::bidirectional_self);
  cases.insert(cases.end(), bidirectional.begin(), bidirectional.end());
  return cases;
}

TEST(KeyRows, OfEveryPatternShowTheSameKeys) {
  for (const support::PatternCase& each : self_cases()) {
    const Plan plan = support::make_inputs(each, {.batch = 2, .tokens = kTokens, .dim = 6, .seed = 5}).plan;
    const Moved there = moved(plan);
    const at::Tensor counts = there.plan.to_dense_counts();
    EXPECT_TRUE(counts.index_select(3, there.row_of).equal(plan.to_dense_counts())) << each.name;
    EXPECT_EQ(attended_pairs(there.plan), attended_pairs(plan)) << each.name;
  }
}

struct Differentiated {
  at::Tensor output, lse, dq, dk, dv;
};
Differentiated differentiate(const std::vector<at::Tensor>& rows, const Plan& plan, const AttendOptions& options) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& each : rows) leaves.push_back(each.clone().requires_grad_(true));
  const AttendResult result = attend(leaves[0], leaves[1], leaves[2], plan, options);
  torch::autograd::backward({result.output}, {random_tensor(result.output.sizes(), 9, rows[0].scalar_type())});
  return {result.output.detach(), result.lse.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

TEST(KeyRows, GiveTheBitsOfKeysAtTheirPositions) {
  struct Kind {
    at::ScalarType type;
    MatmulPrecision precision;
  };
  for (const Kind& kind : {Kind{at::kFloat, MatmulPrecision::fp32}, Kind{at::kFloat, MatmulPrecision::bf16},
                           Kind{at::kDouble, MatmulPrecision::fp32}}) {
    for (const support::PatternCase& each : self_cases()) {
      const Plan plan = support::make_inputs(each, {.batch = 2, .tokens = kTokens, .dim = 6, .seed = 5}).plan;
      const Moved there = moved(plan);
      const auto draw = [&](std::int64_t dim, std::uint64_t seed) {
        return random_tensor({2, each.group.heads, kTokens, dim}, seed, kind.type);
      };
      const std::vector<at::Tensor> rows{draw(6, 1), draw(6, 2), draw(5, 3)};
      const AttendOptions options{.scale = 0.4,
                                  .merge = each.group.merge,
                                  .relative = RelativePosition::true_offset,
                                  .relative_key = random_tensor({2 * 20 + 1, 6}, 4, kind.type),
                                  .relative_value = random_tensor({2 * 20 + 1, 5}, 5, kind.type),
                                  .recency = at::full({each.group.heads}, 0.03, kind.type),
                                  .dropout = {.probability = 0.2, .key = 77},
                                  .precision = kind.precision};
      const Differentiated expected = differentiate(rows, plan, options);
      const Differentiated found = differentiate(
          {rows[0], moved_rows(rows[1], there.row_of), moved_rows(rows[2], there.row_of)}, there.plan, options);
      const auto same = [&](const at::Tensor& a, const at::Tensor& b) {
        return kind.type == at::kFloat ? at::equal(a, b) : at::allclose(a, b, 1e-12, 1e-12);
      };
      const auto back = [&](const at::Tensor& gradient) { return gradient.index_select(2, there.row_of); };
      EXPECT_TRUE(same(found.output, expected.output)) << each.name;
      EXPECT_TRUE(same(found.lse, expected.lse)) << each.name;
      EXPECT_TRUE(same(found.dq, expected.dq)) << each.name;
      EXPECT_TRUE(same(back(found.dk), expected.dk)) << each.name;
      EXPECT_TRUE(same(back(found.dv), expected.dv)) << each.name;
      EXPECT_NEAR(found.dk.abs().sum().item<double>(), expected.dk.abs().sum().item<double>(), 1e-3)
          << each.name << ": nobody's rows have none";
    }
  }
}

TEST(KeyRows, ThatAreNotThereAreRefused) {
  const Plan plan = support::make_inputs(support::pattern_cases(AttentionKind::causal_self).front(),
                                         {.batch = 2, .tokens = kTokens, .dim = 6, .seed = 5})
                        .plan;
  const auto reason = [&](const auto& change) {
    Plan wrong = moved(plan).plan;
    change(wrong);
    return message_of<InputError>([&] { complete_plan(wrong); });
  };
  EXPECT_NE(reason([](Plan& wrong) { wrong.num_keys = 20; }).find("stands in row"), std::string::npos);
  EXPECT_NE(reason([](Plan& wrong) { wrong.key_origin = 1; }).find("let key_origin be 0"), std::string::npos);
  EXPECT_NE(reason([](Plan& wrong) { wrong.key_rows = wrong.key_rows.narrow(0, 0, 5).clone(); }).find("5 rows for"),
            std::string::npos);
  EXPECT_NE(reason([](Plan& wrong) { wrong.key_rows = wrong.key_rows.to(at::kLong); }).find("key_rows holds"),
            std::string::npos);
  const at::Tensor rows = at::zeros({2, 2, kTokens, 6});
  Plan own_places = plan;
  own_places.key_rows = plan.key_order.clone();
  own_places = complete_plan(own_places);
  EXPECT_NE(message_of<InputError>([&] { attend(rows, rows, rows, own_places, {}); }).find("k is q, but the plan says"),
            std::string::npos);
  Plan sealed = moved(plan).plan;
  sealed.key_rows = sealed.key_rows.clone();
  sealed.key_rows.fill_(static_cast<std::int32_t>(kRows));
  const at::Tensor keys = at::zeros({2, 2, kRows, 6});
  EXPECT_THROW(attend(rows, keys, keys, sealed, {}), InputError) << "the seal is of other rows";
}

}  // namespace
}  // namespace routing::attend_key_rows_test
