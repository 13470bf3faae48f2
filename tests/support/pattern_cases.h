// Every pattern in every kind of attention it supports, for tests that must hold for all of them.
#pragma once

#include "routing/attention/patterns/pattern.h"
#include "routing/config/attention.h"
#include "routing/core/random.h"
#include "routing/ops/attend/plan.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace routing::support {

struct PatternCase {
  std::string name;
  AttentionKind kind = AttentionKind::causal_self;
  HeadGroupConfig group;
};
// How GoogleTest shows a case.
inline void PrintTo(const PatternCase& pattern_case, std::ostream* out) {
  *out << pattern_case.name;
}

// Small windows, strides and group counts, so that short sequences have several groups. For self-attention each pattern
// comes with both self rules; LSH and routing with shared and with separate queries and keys.
const std::vector<PatternCase>& every_pattern_case();
// Those of one kind.
std::vector<PatternCase> pattern_cases(AttentionKind kind);

// Standard normal numbers from a seed.
at::Tensor random_tensor(at::IntArrayRef sizes, std::uint64_t seed, at::ScalarType type = at::kDouble);
// A padding mask [batch, tokens] with ragged lengths: sequence 0 is full, the others lose tokens at the end; the last
// one, if there are at least three, loses tokens at the front too. Every sequence keeps a token.
at::Tensor ragged_mask(std::int64_t batch, std::int64_t tokens, std::uint64_t seed);

struct CaseSizes {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t dim = 4;
  bool ragged = false;
  std::uint64_t seed = 1;
  bool training = false;
};

// Inputs and the plan the case's pattern makes of them. Cross-attention reads 2 * tokens / 3 + 1 keys.
struct CaseInputs {
  at::Tensor q, k, v;           // double; k is q where the case shares them
  at::Tensor valid, key_valid;  // undefined unless ragged
  TokenLayout layout;
  Plan plan;
};
CaseInputs make_inputs(const PatternCase& pattern_case, const CaseSizes& sizes);

// The plan of a case for given vectors.
Plan plan_for(const PatternCase& pattern_case, const CaseInputs& inputs, const CaseSizes& sizes);

}  // namespace routing::support
