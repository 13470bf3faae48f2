// One line of every benchmark, and how rows are measured.
#pragma once

#include "lab/measure/runner.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace routing::bench {

struct Row {
  // What was measured. Sizes that mean nothing for a row are 0.
  std::string bench = {};
  std::string pattern = {};  // of attention; the head contents of `train`, the operation of `layers`
  std::int64_t n = 0;        // tokens of a sequence
  std::int64_t heads = 0;
  std::int64_t dim = 0;  // of a head
  std::int64_t window = 0;
  std::int64_t clusters = 0;
  std::int64_t batch = 1;
  std::string precision = {};
  std::string pass = {};
  std::int64_t tokens = 0;  // that a run reads or makes; 0 means all of all sequences
  std::int64_t pairs = 0;   // attended (query, key, group)
  double flops = 0.0;       // see flops.h
  double bytes = 0.0;       // of tensors read and written, where that is counted
  // Clusters a token is a member of, on average; for routing patterns.
  std::optional<double> memberships = std::nullopt;

  // What came out.
  std::optional<std::int64_t> peak_bytes = std::nullopt;
  std::optional<std::int64_t> kept_bytes = std::nullopt;  // from the forward for the backward pass
  Timing timing = {};
  double gemm_gflops = 0.0;  // of the yardstick, in the same rounds
  std::string gemm_type = {};
  double ratio = 1.0;  // each benchmark says to what
  std::optional<double> plan_share = std::nullopt;

  double seconds() const { return timing.median; }
  double gflops() const { return flops * 1e-9 / seconds(); }
  double gigabytes_per_second() const { return bytes * 1e-9 / seconds(); }
  double share_of_gemm() const { return gflops() / gemm_gflops; }
  double seconds_a_pair() const { return seconds() / static_cast<double>(pairs); }
  double tokens_per_second() const { return static_cast<double>(tokens > 0 ? tokens : batch * n) / seconds(); }
};

// A row to be measured and the work that it stands for.
struct Subject {
  Row row = {};
  std::function<void()> run = {};
  // As of Case.
  std::function<void()> before = {};
  int items_a_run = 1;
  int most_rounds = 0;
};

// Times all subjects in turns, and with them the yardstick, at least 15 times. Fills in timing, gemm_gflops and
// gemm_type.
std::vector<Row> measure(const std::vector<Subject>& subjects, const RunnerOptions& options);

// The first row for which this holds; null if there is none.
const Row* find_row(const std::vector<Row>& rows, const std::function<bool(const Row&)>& holds);

}  // namespace routing::bench
