#include "lab/bench/scaling_bench.h"

#include "lab/bench/attention_work.h"
#include "lab/measure/memory.h"
#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace routing::bench {
namespace {

// The inputs of one row and what was resident before they were made.
struct Prepared {
  Prepared(const ScalingBench& bench, const std::string& pattern, const AttentionSizes& sizes)
      : before(resident_bytes()), work(std::make_shared<AttentionWork>(pattern, sizes, bench.seed)) {}
  std::int64_t before;
  std::shared_ptr<const AttentionWork> work;
};

Subject whole_pass(const ScalingBench& bench, const std::string& pattern, const AttentionSizes& sizes,
                   const Prepared& prepared) {
  Subject subject = attention_subject(pattern, sizes, prepared.work, {Pass::forward_backward, bench.precision});
  subject.row.bench = "scaling";
  subject.row.peak_bytes = peak_bytes_above(prepared.before, subject.run);
  return subject;
}

void require_range(const char* what, std::int64_t from, std::int64_t to) {
  require<ConfigError>(from >= 1 && from <= to, what, " go from ", from, " to ", to,
                       "; the first must be at least 1 and not larger than the last");
}

}  // namespace

AttentionSizes sweep_sizes(const ScalingBench& bench, std::int64_t n, std::int64_t clusters) {
  const double window = static_cast<double>(n) / static_cast<double>(clusters);
  return {.batch = bench.batch,
          .n = n,
          .heads = bench.heads,
          .dim = bench.dim,
          .window = std::max<std::int64_t>(1, std::llround(window)),
          .clusters = clusters};
}

AttentionSizes scaling_sizes(const ScalingBench& bench, std::int64_t n) {
  return sweep_sizes(bench, n, std::llround(std::sqrt(static_cast<double>(n))));
}

std::vector<Row> bench_scaling(const ScalingBench& bench, const std::function<void(const std::vector<Row>&)>& done) {
  require_enough_repeats(bench.runner);
  require_range("tokens", bench.from, bench.to);
  for (const std::string& pattern : bench.patterns) attention_heads(pattern, scaling_sizes(bench, bench.from));
  run_small_once(bench.patterns, {bench.precision});
  std::vector<Row> all;
  for (std::int64_t n = bench.from; n <= bench.to; n *= 2) {
    std::vector<Subject> subjects;
    for (const std::string& pattern : bench.patterns) {
      if (pattern == "full" && n > bench.full_to) continue;
      const AttentionSizes sizes = scaling_sizes(bench, n);
      subjects.push_back(whole_pass(bench, pattern, sizes, Prepared(bench, pattern, sizes)));
    }
    std::vector<Row> rows = measure(subjects, bench.runner);
    for (Row& row : rows) {
      const Row* const first = find_row(all, [&](const Row& other) { return other.pattern == row.pattern; });
      if (first != nullptr) row.ratio = row.seconds_a_pair() / first->seconds_a_pair();
    }
    all.insert(all.end(), rows.begin(), rows.end());
    if (done) done(rows);
  }
  return all;
}

std::vector<GrowthFit> fit_growth(const std::vector<Row>& rows, std::int64_t fit_from) {
  std::vector<GrowthFit> fits;
  for (const Row& row : rows) {
    if (std::any_of(fits.begin(), fits.end(), [&](const GrowthFit& fit) { return fit.pattern == row.pattern; }))
      continue;
    GrowthFit fit{.pattern = row.pattern};
    std::vector<GrowthPoint> seconds;
    std::vector<GrowthPoint> bytes;
    for (const Row& point : rows) {
      if (point.pattern != row.pattern || point.n < fit_from) continue;
      const auto n = static_cast<double>(point.n);
      fit.from = fit.points == 0 ? point.n : std::min(fit.from, point.n);
      fit.to = std::max(fit.to, point.n);
      ++fit.points;
      seconds.push_back({n, point.seconds()});
      bytes.push_back({n, static_cast<double>(point.peak_bytes.value_or(0))});
    }
    fit.seconds = growth_exponent(seconds);
    fit.bytes = growth_exponent(bytes);
    fits.push_back(fit);
  }
  return fits;
}

std::vector<Row> bench_cluster_sweep(const ScalingBench& bench, const ClusterSweep& sweep) {
  require_enough_repeats(bench.runner);
  require_range("clusters", sweep.from, sweep.to);
  require<ConfigError>(sweep.to <= sweep.n, "clusters go up to ", sweep.to, ", but the sequence has ", sweep.n,
                       " tokens; lower `sweep.to` or raise `sweep.n`");
  run_small_once({bench.patterns.front()}, {bench.precision});
  std::vector<Subject> subjects;
  for (std::int64_t clusters = sweep.from; clusters <= sweep.to; clusters *= 2) {
    const AttentionSizes sizes = sweep_sizes(bench, sweep.n, clusters);
    const Prepared prepared(bench, bench.patterns.front(), sizes);
    Subject whole = whole_pass(bench, bench.patterns.front(), sizes, prepared);
    whole.row.bench = "scaling-clusters";
    subjects.push_back(whole);
    // Its plan alone comes next; only its seconds are wanted.
    subjects.push_back(
        {.row = whole.row, .run = [work = prepared.work] { work->run(Pass::plan, MatmulPrecision::fp32); }});
  }
  const std::vector<Row> rows = measure(subjects, bench.runner);
  std::vector<Row> wholes;
  for (std::size_t index = 0; index + 1 < rows.size(); index += 2) {
    Row row = rows[index];
    row.plan_share = rows[index + 1].seconds() / row.seconds();
    wholes.push_back(row);
  }
  const double fewest = std::min_element(wholes.begin(), wholes.end(), [](const Row& a, const Row& b) {
                          return a.seconds() < b.seconds();
                        })->seconds();
  for (Row& row : wholes) row.ratio = row.seconds() / fewest;
  return wholes;
}

}  // namespace routing::bench
