#include "lab/bench/attention_bench.h"

#include "lab/measure/memory.h"

#include <memory>

namespace routing::bench {
namespace {

void add_subjects(const AttentionBench& bench, const std::string& pattern, std::vector<Subject>& subjects) {
  const std::int64_t before = resident_bytes();
  const auto work = std::make_shared<AttentionWork>(pattern, bench.sizes, bench.seed);
  const AttentionSizes& sizes = bench.sizes;
  for (const Pass pass : bench.passes) {
    for (const MatmulPrecision precision : bench.precisions) {
      const bool plan = pass == Pass::plan;
      if (plan && precision != bench.precisions.front()) continue;
      Subject subject = attention_subject(pattern, sizes, work, {pass, plan ? MatmulPrecision::fp32 : precision});
      subject.row.bench = "attention";
      subject.row.peak_bytes = peak_bytes_above(before, subject.run);
      subjects.push_back(subject);
    }
  }
}

}  // namespace

std::vector<Row> bench_attention(const AttentionBench& bench) {
  // Wrong names and numbers first: nobody should wait for them.
  require_enough_repeats(bench.runner);
  for (const std::string& pattern : bench.patterns) attention_heads(pattern, bench.sizes);
  run_small_once(bench.patterns, bench.precisions);
  std::vector<Subject> subjects;
  for (const std::string& pattern : bench.patterns) add_subjects(bench, pattern, subjects);
  std::vector<Row> rows = measure(subjects, bench.runner);
  for (Row& row : rows) {
    const Row* const first = find_row(rows, [&](const Row& other) {
      return other.pattern == bench.patterns.front() && other.precision == row.precision && other.pass == row.pass;
    });
    row.ratio = row.seconds_a_pair() / first->seconds_a_pair();
    const Row* const plan = find_row(
        rows, [&](const Row& other) { return other.pattern == row.pattern && other.pass == to_string(Pass::plan); });
    if (plan != nullptr) row.plan_share = plan->seconds() / row.seconds();
  }
  return rows;
}

}  // namespace routing::bench
