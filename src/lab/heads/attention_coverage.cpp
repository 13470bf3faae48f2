#include "lab/heads/attention_coverage.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>

namespace routing {
namespace {

constexpr std::int64_t kQueriesPerChunk = 1;

// What every earlier key would get of dense attention.
std::vector<double> softmax(std::vector<double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (double& value : logits) sum += value = std::exp(value - largest);
  for (double& value : logits) value /= sum;
  return logits;
}

// The products that decide who belongs to the first k.
struct TopKeys {
  double last = 0.0;       // the smallest product among the first k
  std::int64_t above = 0;  // keys with a larger one
  std::int64_t tied = 0;   // keys with just that one
  std::int64_t size = 0;   // k, or all keys if there are fewer
};

TopKeys top_keys(const std::vector<double>& products, const std::vector<double>& descending, std::int64_t k) {
  TopKeys top;
  top.size = std::min<std::int64_t>(k, static_cast<std::int64_t>(products.size()));
  top.last = descending[static_cast<std::size_t>(top.size - 1)];
  top.above = std::count_if(products.begin(), products.end(), [&](double value) { return value > top.last; });
  top.tied = std::count(products.begin(), products.end(), top.last);
  return top;
}

// The one query: what earlier keys have, and who is searched for.
class Search {
 public:
  Search(const GroupProbe& probe, const ProbedQuery& at) {
    std::vector<std::int32_t> earlier(static_cast<std::size_t>(at.query));
    std::iota(earlier.begin(), earlier.end(), 0);
    weights_ = softmax(dense_logits(probe, at, earlier));
    products_ = inner_products(probe, at, earlier);
    std::vector<double> descending = products_;
    const auto longest = std::min<std::ptrdiff_t>(kCoverageTops.back(), std::ssize(descending));
    std::partial_sort(descending.begin(), descending.begin() + longest, descending.end(), std::greater<>());
    for (std::size_t i = 0; i < kCoverageTops.size(); ++i) tops_[i] = top_keys(products_, descending, kCoverageTops[i]);
  }

  PlanCoverage of(std::span<const std::int32_t> keys) const {
    PlanCoverage coverage;
    for (const std::int32_t key : keys) coverage.mass += weights_[static_cast<std::size_t>(key)];
    // All keys: the sum of all weights is 1 but for its last digits.
    if (keys.size() == weights_.size()) coverage.mass = 1.0;
    for (std::size_t i = 0; i < tops_.size(); ++i) {
      const TopKeys& top = tops_[i];
      std::int64_t held_above = 0;
      std::int64_t held_tied = 0;
      for (const std::int32_t key : keys) {
        const double product = products_[static_cast<std::size_t>(key)];
        held_above += product > top.last ? 1 : 0;
        held_tied += product == top.last ? 1 : 0;
      }
      const double drawn = static_cast<double>(top.size - top.above) * static_cast<double>(held_tied);
      coverage.top[i] =
          (static_cast<double>(held_above) + drawn / static_cast<double>(top.tied)) / static_cast<double>(top.size);
    }
    return coverage;
  }

 private:
  std::vector<double> weights_, products_;
  std::array<TopKeys, kCoverageTops.size()> tops_;
};

void add(PlanCoverage& sum, const PlanCoverage& more) {
  sum.mass += more.mass;
  for (std::size_t i = 0; i < sum.top.size(); ++i) sum.top[i] += more.top[i];
}

void divide(PlanCoverage& sum, double count) {
  sum.mass /= count;
  for (double& value : sum.top) value /= count;
}

// In order, so that sums do not depend on threads.
Coverage mean_of(std::span<const Coverage> coverages) {
  Coverage mean;
  for (const Coverage& coverage : coverages) {
    mean.keys += coverage.keys;
    mean.reads_nothing += coverage.reads_nothing;
    add(mean.plan, coverage.plan);
    add(mean.recent, coverage.recent);
    mean.random += coverage.random;
  }
  const auto count = static_cast<double>(coverages.size());
  mean.keys /= count;
  mean.reads_nothing /= count;
  divide(mean.plan, count);
  divide(mean.recent, count);
  mean.random /= count;
  return mean;
}

}  // namespace

Coverage coverage_of_query(const GroupProbe& probe, const ProbedQuery& at) {
  require<InputError>(at.query >= 1, "recall of query ", at.query,
                      " was asked for, but it has no earlier position; take one from 1 on");
  std::vector<std::int32_t> held = attention_row(probe, at.sequence, at.head, at.query).keys;
  Coverage coverage{.reads_nothing = held.empty() ? 1.0 : 0.0};
  held.erase(std::lower_bound(held.begin(), held.end(), static_cast<std::int32_t>(at.query)), held.end());
  std::vector<std::int32_t> recent(held.size());
  std::iota(recent.begin(), recent.end(), static_cast<std::int32_t>(at.query) - static_cast<std::int32_t>(held.size()));
  const Search search(probe, at);
  coverage.keys = static_cast<double>(held.size());
  coverage.plan = search.of(held);
  coverage.recent = search.of(recent);
  coverage.random = coverage.keys / static_cast<double>(at.query);
  return coverage;
}

CoverageReport attention_coverage(SequenceModel& model, const at::Tensor& tokens,
                                  const AttentionCoverageOptions& options) {
  require<InputError>(tokens.dim() == 2 && tokens.size(0) >= 1 && tokens.size(1) >= 2, "recall: tokens are ",
                      tokens.sizes(), ", but must be [sequences, n] with n at least 2");
  require<InputError>(options.queries >= 0, "recall: queries is ", options.queries, ", but must be at least 0");
  CoverageReport report{.sequences = tokens.size(0), .length = tokens.size(1), .queries = 0, .layers = {}};
  std::vector<std::vector<std::vector<Coverage>>> all;  // [layer][head][sequence and query]
  for (std::int64_t sequence = 0; sequence < report.sequences; ++sequence) {
    const auto probes =
        model.probe(tokens.narrow(0, sequence, 1),
                    {.sample_ids = at::full({1}, sequence, at::kLong), .step = 0, .precision = options.precision});
    const std::vector<std::int64_t> queries = sampled_queries(
        {.first = 1, .length = report.length, .count = options.queries, .seed = options.seed, .sequence = sequence});
    report.queries = static_cast<std::int64_t>(queries.size());
    all.resize(probes.size());
    report.layers.resize(probes.size());
    for (std::size_t layer = 0; layer < probes.size(); ++layer) {
      const std::vector<ProbedHead> heads = heads_of(probes[layer]);
      all[layer].resize(heads.size());
      report.layers[layer].resize(heads.size());
      for (std::size_t head = 0; head < heads.size(); ++head) {
        report.layers[layer][head].pattern = heads[head].pattern();
        std::vector<Coverage>& coverages = all[layer][head];
        const std::size_t before = coverages.size();
        coverages.resize(before + queries.size());
        parallel_for(0, report.queries, kQueriesPerChunk, [&](std::int64_t first, std::int64_t last) {
          for (auto query = static_cast<std::size_t>(first); query < static_cast<std::size_t>(last); ++query) {
            coverages[before + query] = coverage_of_query(
                *heads[head].probe, {.sequence = 0, .head = heads[head].head, .query = queries[query]});
          }
        });
      }
    }
    if (options.progress) options.progress(sequence + 1, report.sequences);
  }
  for (std::size_t layer = 0; layer < all.size(); ++layer) {
    for (std::size_t head = 0; head < all[layer].size(); ++head) {
      report.layers[layer][head].coverage = mean_of(all[layer][head]);
    }
  }
  return report;
}

std::optional<Coverage> mean_coverage(const std::vector<HeadCoverage>& layer, HeadKind kind) {
  std::vector<Coverage> coverages;
  for (const HeadCoverage& head : layer) {
    if (ProbedHead::head_kind(head.pattern) == kind) coverages.push_back(head.coverage);
  }
  if (coverages.empty()) return std::nullopt;
  return mean_of(coverages);
}

}  // namespace routing
