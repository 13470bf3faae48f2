// `bench attention`: every pattern in every precision and pass, in one series of rounds.
#pragma once

#include "lab/bench/attention_work.h"
#include "lab/bench/row.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing::bench {

struct AttentionBench {
  AttentionSizes sizes = {};
  std::vector<std::string> patterns = {"local", "nearest", "threshold"};
  std::vector<MatmulPrecision> precisions = {MatmulPrecision::fp32, MatmulPrecision::bf16};
  std::vector<Pass> passes = {Pass::plan, Pass::forward, Pass::forward_backward};
  std::uint64_t seed = 1;
  RunnerOptions runner = {};
};

// A row for each pattern, precision and pass; plans have no precision and one row per pattern, as fp32.
//
//   ratio       seconds per pair relative to the first pattern, in the same precision and pass
//   plan_share  seconds of the plan's row over those of this one, where the passes hold `plan`
std::vector<Row> bench_attention(const AttentionBench& bench);

}  // namespace routing::bench
