// One call of attend, run by the fused kernels and by the reference in double on the same numbers.
#pragma once

#include "routing/kernels/dispatch/isa.h"
#include "routing/ops/attend/attend_fused.h"
#include "routing/ops/attend/plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing::support {

// A level of instructions and the precision asked for; the levels below avx512_bf16 do not round.
struct Level {
  kernels::Isa isa = kernels::Isa::generic;
  MatmulPrecision precision = MatmulPrecision::fp32;
  bool rounds() const { return precision == MatmulPrecision::bf16 && includes(isa, kernels::Isa::avx512_bf16); }
};
// What the functions below run at. Setting it sets the level in force; the destructor restores what was there.
class LevelUnderTest {
 public:
  explicit LevelUnderTest(Level level);
  ~LevelUnderTest();
  LevelUnderTest(const LevelUnderTest&) = delete;
  LevelUnderTest& operator=(const LevelUnderTest&) = delete;

 private:
  kernels::Isa before_;
};

// Everything one call of forward and backward gives.
struct Everything {
  AttendResult result;
  AttendGradients d;
  std::vector<at::Tensor> tensors() const;
};

struct AttendProblem {
  AttendInputs inputs;  // float, rounded to bfloat16 where the level does so
  Plan plan;
  AttendOptions options;
  AttendResult gradient;  // what comes into backward
};

AttendProblem make_problem(const AttendInputs& inputs, const Plan& plan, const AttendOptions& options);
// Tables short enough that some offsets are clipped.
void add_tables(AttendProblem& problem, RelativePosition relative, std::int64_t max = 5);
// A steep and a flat slope for the two heads.
void add_recency(AttendProblem& problem);
// q, k and v of two heads.
AttendInputs random_inputs(std::int64_t batch, std::int64_t tokens, std::int64_t dim, std::int64_t value_dim);
// For several rules: one list of all tokens, and overlapping lists with gaps beside an empty one; two heads.
std::vector<Plan> hand_made_plans(std::int64_t batch, std::int64_t tokens);

Everything run_fused(const AttendProblem& problem);
// In double. The levels of one test meet the same problems: each is worked out once.
Everything run_reference(const AttendProblem& problem);

// Within what float32 or, at levels that round, 8 bits of probabilities and their gradients allow; times `slack`, for
// sums over more pairs than the tests of this room have.
void expect_close(const Everything& fused, const Everything& reference, const std::string& what, double slack = 1.0);
void expect_same_bits(const Everything& a, const Everything& b, const std::string& what);

}  // namespace routing::support
