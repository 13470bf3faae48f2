// Gradients of attend against finite differences, with the plan held fixed.
#include "routing/ops/attend/attend.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace routing::attend_gradient_test {
namespace {

using support::CaseInputs;
using support::make_inputs;
using support::PatternCase;
using support::random_tensor;

// Central differences in double reach about 1e-10; a wrong term shows up far above this.
constexpr double kTolerance = 1e-7;

class AttendGradient : public ::testing::TestWithParam<PatternCase> {};

// attend as a vector of all outputs and all finite log-sum-exps, in (q, k, v, relative_key, relative_value).
support::VectorFunction attend_as_vector(const CaseInputs& inputs, AttendOptions options) {
  return [&inputs, options](const std::vector<at::Tensor>& x) mutable {
    if (x.size() > 3) {
      options.relative_key = x[3];
      options.relative_value = x[4];
    }
    const AttendResult result = attend(x[0], x[1], x[2], inputs.plan, options);
    const at::Tensor seen = result.lse.detach().isfinite();
    return at::cat({result.output.reshape({-1}), result.lse.masked_select(seen)});
  };
}

template <class Check>
void for_merges_and_tables(const PatternCase& pattern_case, const CaseInputs& inputs, const Check& check) {
  for (const Merge merge : {Merge::lse, Merge::mean}) {
    for (const RelativePosition relative :
         {RelativePosition::none, RelativePosition::true_offset, RelativePosition::rank}) {
      if (pattern_case.kind == AttentionKind::cross && relative != RelativePosition::none) continue;
      std::vector<at::Tensor> x{inputs.q, inputs.k, inputs.v};
      if (relative != RelativePosition::none) {
        x.push_back(random_tensor({2 * 2 + 1, inputs.q.size(3)}, 21));
        x.push_back(random_tensor({2 * 2 + 1, inputs.v.size(3)}, 22));
      }
      AttendOptions options{.scale = 0.8,
                            .merge = merge,
                            .merge_eps = 0.01,
                            .relative = relative,
                            .dropout = {.probability = 0.25, .key = 3}};
      // Recency with two of the three kinds of tables.
      if (relative != RelativePosition::true_offset) options.recency = at::tensor({0.5, 0.1}, at::kDouble);
      EXPECT_LT(check(attend_as_vector(inputs, options), x), kTolerance)
          << inputs.plan.num_queries << " tokens, " << to_string(merge) << ", " << to_string(relative);
    }
  }
}

TEST_P(AttendGradient, FullJacobianEqualsFiniteDifferencesForOneToThreeTokens) {
  for (const std::int64_t tokens : {1, 2, 3}) {
    const CaseInputs inputs = make_inputs(GetParam(), {.batch = 1, .tokens = tokens, .dim = 2});
    for_merges_and_tables(GetParam(), inputs, support::jacobian_error);
  }
}

// Every direction moves every number. The 65 tokens are there for the second tile; AttendOracle compares their
// gradients number by number.
TEST_P(AttendGradient, RandomDirectionsEqualFiniteDifferencesForLongerSequences) {
  for (const auto& [tokens, directions] : {std::pair{17, 8}, {65, 2}}) {
    const CaseInputs inputs = make_inputs(GetParam(), {.batch = 2, .tokens = tokens, .ragged = true, .seed = 2});
    for_merges_and_tables(GetParam(), inputs, [directions = directions](const auto& function, const auto& x) {
      return support::directional_error(function, x, directions);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPattern, AttendGradient, ::testing::ValuesIn(support::every_pattern_case()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace routing::attend_gradient_test
