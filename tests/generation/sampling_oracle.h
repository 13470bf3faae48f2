// What Sampler::distribution() must give, by plain loops over sorted lists; and a test of counts against probabilities.
#pragma once

#include "routing/generation/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace routing {

inline std::vector<TokenProbability> sorted_filtered_softmax(const SamplingOptions& options,
                                                             std::span<const float> logits,
                                                             std::span<const std::int32_t> seen) {
  std::vector<std::pair<double, std::int32_t>> list;  // minus the logit, and the id: sorts as needed
  const std::set<std::int32_t> distinct(seen.begin(), seen.end());
  for (std::size_t id = 0; id < logits.size(); ++id) {
    double logit = logits[id];
    if (distinct.contains(static_cast<std::int32_t>(id))) {
      if (logit > 0.0) {
        logit /= options.repetition_penalty;
      } else {
        logit *= options.repetition_penalty;
      }
    }
    if (std::isfinite(logit)) list.emplace_back(-logit, static_cast<std::int32_t>(id));
  }
  std::sort(list.begin(), list.end());
  if (options.temperature == 0.0) return {{list.front().second, 1.0}};
  if (options.top_k > 0) list.resize(std::min(list.size(), static_cast<std::size_t>(options.top_k)));

  std::vector<double> weights;
  double total = 0.0;
  for (const auto& [minus_logit, id] : list) {
    weights.push_back(std::exp((list.front().first - minus_logit) / options.temperature));
    total += weights.back();
  }
  std::size_t kept = 0;
  double mass = 0.0;
  while (kept < list.size() && weights[kept] > 0.0 && (options.top_p == 1.0 || mass < options.top_p * total)) {
    mass += weights[kept++];
  }
  while (weights[kept - 1] < options.min_p * weights[0]) mass -= weights[--kept];
  std::vector<TokenProbability> result;
  for (std::size_t place = 0; place < kept; ++place) result.push_back({list[place].second, weights[place] / mass});
  return result;
}

// The chance that a chi-square variable with so many degrees of freedom exceeds the value: Q(freedom / 2, value / 2) by
// Q(1/2, x) = erfc(sqrt(x)), Q(1, x) = exp(-x) and Q(a + 1, x) = Q(a, x) + x^a exp(-x) / gamma(a + 1).
inline double chance_above(double value, std::int64_t freedom) {
  const double x = value / 2.0;
  double a = freedom % 2 == 0 ? 1.0 : 0.5;
  double chance = freedom % 2 == 0 ? std::exp(-x) : std::erfc(std::sqrt(x));
  for (; 2.0 * a < static_cast<double>(freedom); a += 1.0)
    chance += std::exp(a * std::log(x) - x - std::lgamma(a + 1.0));
  return chance;
}

// Pearson's test: the chance that counts of draws from these probabilities are as far off as these. Zero if something
// was drawn that has no probability. Rare tokens are taken together until five are expected, so that the distribution
// is the one of the table.
inline double chance_of_counts(const std::vector<TokenProbability>& expected, std::vector<std::int64_t> counts) {
  std::int64_t draws = 0;
  for (const std::int64_t count : counts) draws += count;
  double chi_square = 0.0;
  double wanted = 0.0;
  double found = 0.0;
  std::int64_t cells = 0;
  const auto close_cell = [&] {
    chi_square += (found - wanted) * (found - wanted) / wanted;
    ++cells;
    wanted = found = 0.0;
  };
  for (auto token = expected.rbegin(); token != expected.rend(); ++token) {  // rare ones first
    std::int64_t& count = counts[static_cast<std::size_t>(token->token)];
    wanted += token->probability * static_cast<double>(draws);
    found += static_cast<double>(std::exchange(count, 0));
    if (wanted >= 5.0) close_cell();
  }
  if (wanted > 0.0) close_cell();
  for (const std::int64_t count : counts) {
    if (count > 0) return 0.0;
  }
  return cells == 1 ? 1.0 : chance_above(chi_square, cells - 1);
}

}  // namespace routing
