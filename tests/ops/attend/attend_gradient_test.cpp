// Gradients of attend against finite differences, with the plan held fixed.
#include "routing/ops/attend/attend.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
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

// The plan of so many copies of one sequence.
Plan repeated(Plan plan, std::int64_t copies) {
  const std::int64_t groups = plan.num_groups();
  const at::Tensor first_groups = plan.unit_offsets.narrow(0, 0, plan.num_units());
  plan.unit_offsets = at::cat(
      {(at::arange(copies).unsqueeze(1) * groups + first_groups).flatten(), at::full({1}, copies * groups, at::kLong)});
  plan.groups = plan.groups.repeat({copies, 1});
  plan.batch = copies;
  return complete_plan(plan);
}

// attend of copies of the sequence, in (q, k, v): [copies, outputs and finite log-sum-exps].
support::VectorFunction attend_in_copies(const CaseInputs& inputs, AttendOptions options) {
  return [&inputs, options](const std::vector<at::Tensor>& x) mutable {
    const std::int64_t copies = x[0].size(0);
    options.dropout.sample_ids = at::zeros({copies}, at::kLong);
    const AttendResult result = attend(x[0], x[1], x[2], repeated(inputs.plan, copies), options);
    const at::Tensor seen = result.lse.detach()[0].flatten().isfinite().nonzero().flatten();
    return at::cat({result.output.flatten(1), result.lse.flatten(1).index_select(1, seen)}, 1);
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
      EXPECT_LT(check(options, x), kTolerance)
          << inputs.plan.num_queries << " tokens, " << to_string(merge) << ", " << to_string(relative);
    }
  }
}

// The tables belong to all sequences of a call, so that their numbers are moved one by one.
double full_jacobian_error(const CaseInputs& inputs, AttendOptions options, const std::vector<at::Tensor>& x) {
  const std::vector<at::Tensor> tables(x.begin() + 3, x.end());
  const auto in_tables = [&](const std::vector<at::Tensor>& moved) {
    return attend_as_vector(inputs, options)({x[0], x[1], x[2], moved[0], moved[1]});
  };
  const double of_tables = tables.empty() ? 0.0 : support::jacobian_error(in_tables, tables);
  if (!tables.empty()) {
    options.relative_key = tables[0];
    options.relative_value = tables[1];
  }
  return std::max(of_tables, support::jacobian_error_in_copies(attend_in_copies(inputs, options), {x[0], x[1], x[2]}));
}

TEST_P(AttendGradient, FullJacobianEqualsFiniteDifferencesForOneToThreeTokens) {
  for (const std::int64_t tokens : {1, 2, 3}) {
    const CaseInputs inputs = make_inputs(GetParam(), {.batch = 1, .tokens = tokens, .dim = 2});
    for_merges_and_tables(GetParam(), inputs, [&](const AttendOptions& options, const std::vector<at::Tensor>& x) {
      return full_jacobian_error(inputs, options, x);
    });
  }
}

// Every direction moves every number. The 65 tokens are there for the second tile; AttendOracle compares their
// gradients number by number.
TEST_P(AttendGradient, RandomDirectionsEqualFiniteDifferencesForLongerSequences) {
  for (const auto& [tokens, directions] : {std::pair{17, 8}, {65, 2}}) {
    const CaseInputs inputs = make_inputs(GetParam(), {.batch = 2, .tokens = tokens, .ragged = true, .seed = 2});
    for_merges_and_tables(GetParam(), inputs,
                          [&, count = directions](const AttendOptions& options, const std::vector<at::Tensor>& x) {
                            return support::directional_error(attend_as_vector(inputs, options), x, count);
                          });
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPattern, AttendGradient, ::testing::ValuesIn(support::every_pattern_case()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace routing::attend_gradient_test
