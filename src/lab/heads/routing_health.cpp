#include "lab/heads/routing_health.h"

#include "lab/figures/chart_axis.h"
#include "lab/measure/statistics.h"
#include "routing/core/error.h"
#include "routing/training/log/metrics_log.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>

namespace routing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

bool is_in(const nlohmann::ordered_json& line, const std::string& key) {
  return line.contains(key) && (line[key].is_number() || line[key].is_null());
}

void append(const nlohmann::ordered_json& line, const std::string& prefix, std::vector<HealthSeries>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string key = prefix + health_measures()[i].key;
    if (!is_in(line, key)) continue;
    all[i].steps.push_back(line["step"].get<double>());
    all[i].values.push_back(line[key].is_null() ? kNan : line[key].get<double>());
  }
}

bool all_empty(const std::vector<HealthSeries>& all) {
  return std::all_of(all.begin(), all.end(), [](const HealthSeries& series) { return series.empty(); });
}

void judge_entropy(const HealthHistory& history, const std::string& key, const HealthLimits& limits,
                   HealthVerdict& verdict) {
  const double entropy = history.latest(key);
  if (!std::isfinite(entropy)) return;
  const std::string what = health_measures()[health_measure(key)].name + " is " + fmt::format("{:.3f}", entropy);
  if (entropy < limits.collapsed) {
    verdict.problems.push_back("collapsed: " + what + ", below " + fmt::format("{:.2f}", limits.collapsed));
  } else if (entropy < limits.uneven) {
    verdict.remarks.push_back("uneven: " + what + ", below " + fmt::format("{:.2f}", limits.uneven));
  }
}

}  // namespace

const std::vector<HealthMeasure>& health_measures() {
  static const std::vector<HealthMeasure> all{
      {"occupancy_entropy_min", "occupancy entropy, worst head"},
      {"occupancy_entropy_mean", "occupancy entropy, mean of heads"},
      {"choice_entropy_min", "choice entropy, worst head"},
      {"moving_entropy_min", "entropy of what moves centroids, worst"},
      {"moving_entropy_mean", "entropy of what moves centroids, mean"},
      {"fallback_fraction", "share of tokens that pass no threshold"},
      {"fallback_fraction_max", "passing no threshold, worst head"},
      {"occupancy_min", "smallest cluster's share of members"},
      {"occupancy_max", "largest cluster's share of members"},
      {"dead_centroids", "dead centroids, all heads"},
      {"revived", "centroids revived"},
      {"tau_drift", "drift of thresholds, deviations per step"},
      {"memberships", "clusters a token is in"},
      {"unrouted_fraction", "share of tokens in no cluster"},
      {"overlap_fraction", "share of tokens in several"},
      {"commitment_loss", "distance to the centroid, squared"},
  };
  return all;
}

std::size_t health_measure(const std::string& key) {
  const auto& all = health_measures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const HealthMeasure& m) { return m.key == key; });
  require<InputError>(found != all.end(), "'", key, "' is not a measure of routing; see health_measures()");
  return static_cast<std::size_t>(found - all.begin());
}

double HealthSeries::recent() const {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  if (finite.empty()) return kNan;
  const std::size_t count = std::max<std::size_t>(1, finite.size() / 10);
  finite.erase(finite.begin(), finite.end() - static_cast<std::ptrdiff_t>(count));
  return quantile(finite, 0.5);
}

bool HealthHistory::empty() const {
  return all_empty(training) && all_empty(evaluation);
}

std::vector<std::string> HealthHistory::missing() const {
  std::vector<std::string> keys;
  const auto add = [&](const std::vector<HealthSeries>& all, const std::string& prefix) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].empty()) keys.push_back(prefix + health_measures()[i].key);
    }
  };
  add(training, "routing_");
  if (!all_empty(evaluation)) add(evaluation, "eval_routing_");
  return keys;
}

double HealthHistory::latest(const std::string& key) const {
  const std::size_t index = health_measure(key);
  if (index < evaluation.size() && !evaluation[index].empty() && key != "tau_drift") {
    const double last = evaluation[index].values.back();
    if (std::isfinite(last)) return last;
  }
  return index < training.size() ? training[index].recent() : kNan;
}

HealthHistory read_health_history(const std::filesystem::path& metrics) {
  HealthHistory history;
  history.training.resize(health_measures().size());
  history.evaluation.resize(health_measures().size());
  for (const nlohmann::ordered_json& line : read_metrics(metrics)) {
    if (!line.contains("step") || !line["step"].is_number()) continue;
    append(line, "routing_", history.training);
    append(line, "eval_routing_", history.evaluation);
  }
  return history;
}

std::string HealthVerdict::text() const {
  std::vector<std::string> parts = problems;
  parts.insert(parts.end(), remarks.begin(), remarks.end());
  if (!healthy()) return "unhealthy: " + joined(parts);
  return parts.empty() ? "healthy" : "healthy; " + joined(parts);
}

HealthVerdict judge_history(const HealthHistory& history, std::int64_t clusters, const HealthLimits& limits) {
  HealthVerdict verdict;
  const double dead = history.latest("dead_centroids");
  if (dead > 0.0) verdict.problems.push_back(fmt::format("{:.0f}", dead) + " dead centroids, more than 0");
  judge_entropy(history, "occupancy_entropy_min", limits, verdict);
  judge_entropy(history, "choice_entropy_min", limits, verdict);
  const double drift = history.latest("tau_drift");
  const double most = limits.drift / static_cast<double>(std::max<std::int64_t>(1, clusters));
  if (drift > most) {
    verdict.problems.push_back("still drifting: thresholds move by " + fmt::format("{:.4f}", drift) +
                               " deviations per step, more than " + fmt::format("{:.4f}", most));
  }
  for (const char* key : {"dead_centroids", "occupancy_entropy_min", "choice_entropy_min", "tau_drift"}) {
    if (!std::isfinite(history.latest(key))) verdict.remarks.push_back(std::string(key) + " was not logged");
  }
  return verdict;
}

}  // namespace routing
