#include "bench/attention_bench.h"

#include "bench/memory.h"

#include <memory>

namespace routing::bench {
namespace {

double seconds_a_pair(const Row& row) {
  return row.seconds() / static_cast<double>(row.pairs);
}

void add_subjects(const AttentionBench& bench, const std::string& pattern, std::vector<Subject>& subjects) {
  const std::int64_t before = resident_bytes();
  const auto work = std::make_shared<AttentionWork>(pattern, bench.sizes, bench.seed);
  const AttentionSizes& sizes = bench.sizes;
  for (const Pass pass : bench.passes) {
    for (const MatmulPrecision precision : bench.precisions) {
      const bool plan = pass == Pass::plan;
      if (plan && precision != bench.precisions.front()) continue;
      Subject subject{.row = {.bench = "attention",
                              .pattern = pattern,
                              .n = sizes.n,
                              .heads = sizes.heads,
                              .dim = sizes.dim,
                              .window = sizes.window,
                              .clusters = sizes.clusters,
                              .batch = sizes.batch,
                              .precision = std::string(to_string(plan ? MatmulPrecision::fp32 : precision)),
                              .pass = std::string(to_string(pass)),
                              .pairs = work->pairs(),
                              .flops = attention_flops(pass, work->pairs(), sizes.dim),
                              .memberships = work->memberships()},
                      .run = [work, pass, precision] { work->run(pass, precision); }};
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
    row.ratio = seconds_a_pair(row) / seconds_a_pair(*first);
    const Row* const plan = find_row(
        rows, [&](const Row& other) { return other.pattern == row.pattern && other.pass == to_string(Pass::plan); });
    if (plan != nullptr) row.plan_share = plan->seconds() / row.seconds();
  }
  return rows;
}

}  // namespace routing::bench
