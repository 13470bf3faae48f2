// How healthy were the clusters of a run while it trained? What metrics.jsonl says of them, and a verdict.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

// A number that the trainer logs of all routed heads together (training/routing_summary.h).
struct HealthMeasure {
  std::string key;   // in a line of evaluation "eval_routing_" stands before it, in others "routing_"
  std::string name;  // "occupancy entropy, worst head"
};

// In the order in which tables and figures show them.
const std::vector<HealthMeasure>& health_measures();
// The place of a key in health_measures(); an InputError names one that is none.
std::size_t health_measure(const std::string& key);

// One measure over the steps of a run.
struct HealthSeries {
  std::vector<double> steps = {};
  std::vector<double> values = {};  // not a number where the log says null

  bool empty() const { return values.empty(); }
  // The middle one of the last tenth of its finite values (at least of one); not a number if there are none. A single
  // training step sees few tokens, so its own number says little.
  double recent() const;
};

// Both in the order of health_measures(); a measure that no line has is an empty series.
struct HealthHistory {
  std::vector<HealthSeries> training = {};
  std::vector<HealthSeries> evaluation = {};

  // Nothing of routing at all: the run has no routed heads, or has not logged yet.
  bool empty() const;
  // Keys that no line has, of training or of evaluation; of evaluation only if it has some.
  std::vector<std::string> missing() const;
  // What to judge a measure by: the last evaluation, which sees the most tokens, or else recent() of training.
  // tau_drift is always that of training: evaluation moves nothing. Not a number if neither is there.
  double latest(const std::string& key) const;
};

// From the lines of a metrics.jsonl; a FileError as read_metrics().
HealthHistory read_health_history(const std::filesystem::path& metrics);

// Limits of the verdict.
struct HealthLimits {
  double collapsed = 0.5;  // occupancy or choice entropy of the worst head below this: a few clusters hold most tokens
  double uneven = 0.9;     // below this: worth a remark
  double drift = 0.5;      // tau_drift above this share of 1 / clusters: thresholds still move
};

// What is wrong, and what is worth a look; each a clause that names its number and its limit.
struct HealthVerdict {
  std::vector<std::string> problems = {};
  std::vector<std::string> remarks = {};

  bool healthy() const { return problems.empty(); }
  // "healthy", "healthy; …" or "unhealthy: …" on one line.
  std::string text() const;
};

// `clusters` is that of the run's routed heads. Measures that are not there are not judged, and a remark says so.
HealthVerdict judge_history(const HealthHistory& history, std::int64_t clusters, const HealthLimits& limits = {});

}  // namespace routing
