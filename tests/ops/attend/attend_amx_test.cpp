// The AMX level of fused attention, its real machine code: on processors without tiles under an emulator, which takes
// some microseconds per instruction, so sizes are small.
#include "routing/core/parallel.h"
#include "support/amx/amx_emulator.h"
#include "support/attend_problems.h"
#include "support/pattern_cases.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace routing::attend_amx_test {
namespace {

using kernels::Isa;
using support::AmxEmulator;
using support::AmxOperation;
using support::AttendProblem;
using support::Everything;
using support::Level;
using support::LevelUnderTest;

class AttendAmx : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto& isas = kernels::supported_isas();
    if (std::count(isas.begin(), isas.end(), Isa::avx512_bf16) == 0 || !support::can_run_amx()) {
      GTEST_SKIP() << "needs AVX-512 with bfloat16, and tiles that Linux does not refuse";
    }
    at::set_num_threads(1);
    emulator_ = std::make_unique<AmxEmulator>();
    kernels::assume_isa_runs(Isa::amx);
    level_ = std::make_unique<LevelUnderTest>(Level{Isa::amx, MatmulPrecision::bf16});
  }
  void TearDown() override {
    if (emulator_ == nullptr) return;
    EXPECT_FALSE(support::tiles_are_configured()) << "a kernel left its tiles behind";
    if (emulator_->installed()) {
      EXPECT_GT(emulator_->count(AmxOperation::multiply_bf16), 0) << "no tile was multiplied";
    }
    level_.reset();
    emulator_.reset();
    set_num_threads(threads_);
  }

 private:
  int threads_ = num_threads();
  std::unique_ptr<AmxEmulator> emulator_;
  std::unique_ptr<LevelUnderTest> level_;
};

TEST_F(AttendAmx, EqualsTheReferenceForEveryLength) {
  for (const std::int64_t tokens : {1, 15, 17, 33, 65, 80, 150}) {
    const AttendInputs inputs = support::random_inputs(1, tokens, 8, 5);
    int number = 0;
    for (const Plan& plan : support::hand_made_plans(1, tokens)) {
      AttendProblem problem =
          support::make_problem(inputs, plan, {.scale = 0.4, .merge = ++number % 3 == 0 ? Merge::mean : Merge::lse});
      if (number % 3 > 0) {
        support::add_tables(problem, number % 2 == 0 ? RelativePosition::rank : RelativePosition::true_offset,
                            1 + 9 * number);
      }
      if (number % 4 > 1) support::add_recency(problem);
      support::expect_close(support::run_fused(problem), support::run_reference(problem),
                            std::to_string(tokens) + " tokens, plan " + std::to_string(number));
    }
  }
}

TEST_F(AttendAmx, EqualsTheReferenceForEveryDim) {
  for (const std::int64_t dim : {1, 32, 33, 64, 100}) {
    for (const std::int64_t value_dim : {dim, std::int64_t{48}}) {
      const AttendInputs inputs = support::random_inputs(1, 70, dim, value_dim);
      const Plan plan = support::hand_made_plans(1, 70)[3];
      AttendProblem problem = support::make_problem(inputs, plan, {.scale = 1.0 / std::sqrt(static_cast<double>(dim))});
      problem.options.dropout = {.probability = 0.5, .key = 9};
      support::expect_close(support::run_fused(problem), support::run_reference(problem),
                            "dim " + std::to_string(dim) + ", value dim " + std::to_string(value_dim));
    }
  }
}

TEST_F(AttendAmx, BitsDependNeitherOnThreadsNorOnLaterTokens) {
  constexpr std::int64_t kTokens = 140;
  const auto prefix = [](const at::Tensor& x, std::int64_t tokens) { return x.narrow(2, 0, tokens); };
  for (const std::size_t number : {2, 3, 7, 9}) {
    const Plan plan = support::hand_made_plans(1, kTokens)[number];
    AttendProblem problem = support::make_problem(support::random_inputs(1, kTokens, 12, 7), plan, {});
    support::add_tables(problem, RelativePosition::rank, 30);
    if (number != 3) support::add_recency(problem);
    set_num_threads(1);
    const Everything one = support::run_fused(problem);
    set_num_threads(2);
    support::expect_same_bits(one, support::run_fused(problem), "2 threads");
    for (const std::int64_t tokens : {1, 33, 64, 100, 139}) {
      const Plan short_plan = support::hand_made_plans(1, tokens)[number];
      const AttendInputs short_inputs{prefix(problem.inputs.q, tokens), prefix(problem.inputs.k, tokens),
                                      prefix(problem.inputs.v, tokens)};
      const AttendResult alone = attend_fused_forward(short_inputs, short_plan, problem.options);
      ASSERT_TRUE(at::equal(alone.output, prefix(one.result.output, tokens))) << tokens << " tokens";
      ASSERT_TRUE(at::equal(alone.lse, prefix(one.result.lse, tokens))) << tokens << " tokens";
    }
  }
}

}  // namespace
}  // namespace routing::attend_amx_test
