// Plans over the rows that a piece of a sequence has: the same keys, outputs and gradients as in the whole sequence.
#include "routing/attention/pieces/earlier_rows.h"
#include "routing/attention/plan/remembered_tokens.h"
#include "routing/ops/attend/attend.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <string>
#include <vector>

namespace routing::piece_rows_test {
namespace {

using support::random_tensor;

TEST(FirstPositionRead, GoesByTheWindowTheBlockOrToTheBeginning) {
  const ListRules window{.lookback = 10};
  EXPECT_EQ(first_position_read(window, 0, 200), 64) << "190, less a tile, at a multiple of one";
  EXPECT_EQ(first_position_read(window, 0, 202), 128);
  EXPECT_EQ(first_position_read(window, 1, 202), 64) << "shifted keys are rows of the token before";
  EXPECT_EQ(first_position_read(window, 0, 137), 0);
  EXPECT_EQ(first_position_read(window, 0, 0), 0);
  const ListRules blocks{.block = 50, .before = 100};
  EXPECT_EQ(first_position_read(blocks, 0, 349), 128) << "its block begins at 300, what it reads at 200";
  EXPECT_EQ(first_position_read(ListRules{}, 0, 349), 0) << "all keys";
  EXPECT_EQ(first_position_read(ListRules{.lists = 4, .lookback = 10}, 0, 349), 0) << "keys anywhere";
}

// The plan of a case for 300 tokens, of which 200 are of earlier pieces.
constexpr std::int64_t kTokens = 300;
constexpr std::int64_t kBegin = 200;

struct PieceCase {
  support::CaseInputs whole = {};
  Plan plan = {};
  std::int64_t first = 0;
};

std::optional<PieceCase> piece_case(const support::PatternCase& each) {
  const auto rules =
      make_pattern(each.group, {.kind = each.kind, .dim = 6, .options = at::TensorOptions().dtype(at::kDouble)})
          ->list_rules();
  if (!rules) return std::nullopt;
  PieceCase made{.whole = support::make_inputs(each, {.batch = 2, .tokens = kTokens, .dim = 6, .seed = 5})};
  made.first = first_position_read(*rules, each.group.key_shift, kBegin);
  made.plan = with_rows_from(with_queries_from(made.whole.plan, kBegin), kBegin, made.first);
  return made;
}

TEST(PieceRows, OfEveryPatternSeeWhatTheWholeSees) {
  int shortened = 0;
  for (const support::PatternCase& each : support::pattern_cases(AttentionKind::causal_self)) {
    const auto made = piece_case(each);
    if (!made) continue;
    shortened += made->first > 0 ? 1 : 0;
    const at::Tensor all = made->whole.plan.to_dense_counts().narrow(2, kBegin, kTokens - kBegin);
    EXPECT_EQ(all.narrow(3, 0, made->first).sum().item<std::int64_t>(), 0) << each.name;
    EXPECT_TRUE(made->plan.to_dense_counts().equal(all.narrow(3, made->first, kTokens - made->first))) << each.name;
  }
  EXPECT_GE(shortened, 2) << "local heads, sliding and in blocks";
}

// Gradients of all rows that a plan has, of weighted outputs and log-sum-exps.
struct Differentiated {
  at::Tensor output, lse, dq, dk, dv;
};
Differentiated differentiate(const AttendInputs& inputs, const Plan& plan, const AttendOptions& options,
                             const AttendResult& gradient) {
  const auto leaf = [](const at::Tensor& rows) { return rows.clone().requires_grad_(true); };
  const AttendInputs rows{leaf(inputs.q), leaf(inputs.k), leaf(inputs.v)};
  const AttendResult result = attend(rows.q, rows.k, rows.v, plan, options);
  torch::autograd::backward({result.output, result.lse}, {gradient.output, gradient.lse});
  return {result.output.detach(), result.lse.detach(), rows.q.grad(), rows.k.grad(), rows.v.grad()};
}

TEST(PieceRows, OfEveryPatternHaveTheOutputsAndGradientsOfTheWhole) {
  const std::int64_t own = kTokens - kBegin;
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const support::PatternCase& each : support::pattern_cases(AttentionKind::causal_self)) {
      const auto made = piece_case(each);
      if (!made) continue;
      const std::int64_t heads = made->whole.plan.heads;
      const auto draw = [&](std::int64_t dim, std::uint64_t seed) {
        return random_tensor({2, heads, kTokens, dim}, seed, type);
      };
      const AttendInputs whole{draw(6, 1), draw(6, 2), draw(5, 3)};
      AttendOptions options{.scale = 0.4,
                            .merge = each.group.merge,
                            .relative = RelativePosition::true_offset,
                            .relative_key = random_tensor({2 * 20 + 1, 6}, 4, type),
                            .dropout = {.probability = 0.2, .key = 77}};
      options.recency = at::full({heads}, 0.03, type);
      // Queries before the piece get no gradient. Where a query sees nothing there is none of its log-sum-exp.
      AttendResult gradient{draw(5, 6), at::zeros({2, heads, kTokens}, type)};
      gradient.output.narrow(2, 0, kBegin).zero_();
      const Differentiated expected = differentiate(whole, made->whole.plan, options, gradient);
      const auto later = [](const at::Tensor& rows, std::int64_t first) {
        return rows.narrow(2, first, rows.size(2) - first).contiguous();
      };
      const Differentiated piece =
          differentiate({later(whole.q, kBegin), later(whole.k, made->first), later(whole.v, made->first)}, made->plan,
                        options, {later(gradient.output, kBegin), later(gradient.lse, kBegin)});
      EXPECT_EQ(piece.output.size(2), own);
      if (type == at::kFloat) {
        EXPECT_TRUE(at::equal(piece.output, later(expected.output, kBegin))) << each.name << ": the same bits";
        EXPECT_TRUE(at::equal(piece.lse, later(expected.lse, kBegin))) << each.name << ": the same bits";
      }
      const double tolerance = type == at::kFloat ? 2e-6 : 1e-12;
      const auto close = [&](const at::Tensor& a, const at::Tensor& b) {
        return at::allclose(a, b, tolerance, tolerance);
      };
      EXPECT_TRUE(close(piece.output, later(expected.output, kBegin))) << each.name;
      EXPECT_TRUE(close(piece.dq, later(expected.dq, kBegin))) << each.name;
      EXPECT_TRUE(close(piece.dk, later(expected.dk, made->first))) << each.name;
      EXPECT_TRUE(close(piece.dv, later(expected.dv, made->first))) << each.name;
      if (made->first > 0) {
        EXPECT_EQ(expected.dk.narrow(2, 0, made->first).abs().sum().item<double>(), 0.0) << each.name;
      }
    }
  }
}

}  // namespace
}  // namespace routing::piece_rows_test
