#include "lab/bench/row.h"

#include "lab/measure/gemm_rate.h"

#include <algorithm>
#include <cstddef>

namespace routing::bench {
namespace {

constexpr int kGemmRuns = 15;

}  // namespace

std::vector<Row> measure(const std::vector<Subject>& subjects, const RunnerOptions& options) {
  GemmProbe gemm;
  const int rounds = std::max(1, options.repeats);
  std::vector<Case> cases{
      {.name = "gemm", .run = [&] { gemm.run(); }, .runs_a_round = (kGemmRuns + rounds - 1) / rounds}};
  for (const Subject& subject : subjects) {
    cases.push_back({.name = subject.row.pattern,
                     .run = subject.run,
                     .before = subject.before,
                     .items_a_run = subject.items_a_run,
                     .most_rounds = subject.most_rounds});
  }
  const std::vector<Timing> timings = run_in_turns(cases, options);
  std::vector<Row> rows;
  for (std::size_t index = 0; index < subjects.size(); ++index) {
    Row row = subjects[index].row;
    row.timing = timings[index + 1];
    row.gemm_gflops = gemm.flops() * 1e-9 / timings[0].median;
    row.gemm_type = to_string(gemm.type());
    rows.push_back(row);
  }
  return rows;
}

const Row* find_row(const std::vector<Row>& rows, const std::function<bool(const Row&)>& holds) {
  const auto found = std::find_if(rows.begin(), rows.end(), holds);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace routing::bench
