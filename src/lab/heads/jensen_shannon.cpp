#include "lab/heads/jensen_shannon.h"

#include "lab/heads/probed_heads.h"
#include "lab/measure/statistics.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/core/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace routing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kQueriesPerChunk = 8;

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// p log(p / m) / 2 with m = (p + q) / 2; nothing of a key that p does not read.
double half_term(double p, double q) {
  return p > 0.0 ? 0.5 * p * std::log(2.0 * p / (p + q)) : 0.0;
}

using HeadPair = std::pair<std::size_t, std::size_t>;

std::vector<HeadPair> pairs_of(std::size_t heads) {
  std::vector<HeadPair> pairs;
  for (std::size_t first = 0; first < heads; ++first) {
    for (std::size_t second = first + 1; second < heads; ++second) pairs.emplace_back(first, second);
  }
  return pairs;
}

// Sums over the queries of one sequence, or of several.
struct PairSum {
  double total = 0.0;
  std::int64_t queries = 0;  // where both heads read something
  double mean() const { return queries > 0 ? total / static_cast<double>(queries) : kNan; }
};

// One layer over all sequences.
struct LayerSums {
  std::vector<std::string> patterns;
  std::vector<HeadPair> pairs;
  std::vector<std::vector<PairSum>> sums;   // [sequence][pair]
  std::vector<std::int64_t> reads_nothing;  // [head]
};

void add_sequence(LayerSums& layer, const std::vector<GroupProbe>& probes, const std::vector<std::int64_t>& queries) {
  const std::vector<ProbedHead> heads = heads_of(probes);
  if (layer.patterns.empty()) {
    for (const ProbedHead& head : heads) layer.patterns.push_back(head.pattern());
    layer.pairs = pairs_of(heads.size());
    layer.reads_nothing.assign(heads.size(), 0);
  }
  const std::size_t num_pairs = layer.pairs.size();
  std::vector<double> values(queries.size() * num_pairs, kNan);
  std::vector<char> empty(queries.size() * heads.size(), 0);
  parallel_for(0, static_cast<std::int64_t>(queries.size()), kQueriesPerChunk,
               [&](std::int64_t first, std::int64_t last) {
                 for (auto query = static_cast<std::size_t>(first); query < static_cast<std::size_t>(last); ++query) {
                   std::vector<AttentionRow> rows;
                   for (const ProbedHead& head : heads) {
                     rows.push_back(head.row(0, queries[query]));
                     empty[query * heads.size() + rows.size() - 1] = rows.back().keys.empty() ? 1 : 0;
                   }
                   for (std::size_t pair = 0; pair < num_pairs; ++pair) {
                     const AttentionRow& p = rows[layer.pairs[pair].first];
                     const AttentionRow& q = rows[layer.pairs[pair].second];
                     if (p.keys.empty() || q.keys.empty()) continue;
                     values[query * num_pairs + pair] = jensen_shannon(p, q);
                   }
                 }
               });
  // In the order of the queries, whatever the threads did.
  std::vector<PairSum>& sums = layer.sums.emplace_back(num_pairs);
  for (std::size_t query = 0; query < queries.size(); ++query) {
    for (std::size_t head = 0; head < heads.size(); ++head) {
      layer.reads_nothing[head] += empty[query * heads.size() + head];
    }
    for (std::size_t pair = 0; pair < num_pairs; ++pair) {
      const double value = values[query * num_pairs + pair];
      if (std::isnan(value)) continue;
      sums[pair].total += value;
      ++sums[pair].queries;
    }
  }
}

struct KindPair {
  HeadKind first = HeadKind::local;
  HeadKind second = HeadKind::local;
};

bool is_of(const LayerSums& layer, const HeadPair& pair, const KindPair& kinds) {
  const HeadKind first = ProbedHead::head_kind(layer.patterns[pair.first]);
  const HeadKind second = ProbedHead::head_kind(layer.patterns[pair.second]);
  return (first == kinds.first && second == kinds.second) || (first == kinds.second && second == kinds.first);
}

Divergence drawn(const LayerSums& layer, const KindPair& kinds, std::int64_t queries, std::int64_t draws,
                 RandomStream stream) {
  std::vector<double> candidates;
  std::int64_t counted = 0;
  std::int64_t all = 0;
  for (const std::vector<PairSum>& sequence : layer.sums) {
    for (std::size_t pair = 0; pair < layer.pairs.size(); ++pair) {
      if (!is_of(layer, layer.pairs[pair], kinds)) continue;
      counted += sequence[pair].queries;
      all += queries;
      if (sequence[pair].queries > 0) candidates.push_back(sequence[pair].mean());
    }
  }
  Divergence result;
  if (all > 0) result.left_out = 1.0 - static_cast<double>(counted) / static_cast<double>(all);
  if (candidates.empty()) return result;
  std::vector<double> values;
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    values.push_back(candidates[stream.below(static_cast<std::uint32_t>(candidates.size()))]);
  }
  result.draws = draws;
  result.mean = mean(values);
  result.deviation = standard_deviation(values);
  return result;
}

LayerDivergence summary_of(const LayerSums& layer, std::int64_t queries, std::uint64_t number,
                           const DivergenceOptions& options) {
  const std::size_t heads = layer.patterns.size();
  LayerDivergence result{.patterns = layer.patterns,
                         .reads_nothing = {},
                         .matrix = std::vector<double>(heads * heads, 0.0),
                         .local_local = {},
                         .local_content = {},
                         .content_content = {}};
  const double looked_at = static_cast<double>(queries) * static_cast<double>(layer.sums.size());
  for (const std::int64_t count : layer.reads_nothing) {
    result.reads_nothing.push_back(static_cast<double>(count) / looked_at);
  }
  for (std::size_t pair = 0; pair < layer.pairs.size(); ++pair) {
    PairSum whole;
    for (const std::vector<PairSum>& sequence : layer.sums) {
      whole.total += sequence[pair].total;
      whole.queries += sequence[pair].queries;
    }
    const auto [first, second] = layer.pairs[pair];
    result.matrix[first * heads + second] = result.matrix[second * heads + first] = whole.mean();
  }
  const auto of = [&](HeadKind first, HeadKind second, std::uint64_t which) {
    return drawn(layer, {first, second}, queries, options.draws,
                 RandomStream(options.seed, "divergence draws", {number, which}));
  };
  result.local_local = of(HeadKind::local, HeadKind::local, 0);
  result.local_content = of(HeadKind::local, HeadKind::content, 1);
  result.content_content = of(HeadKind::content, HeadKind::content, 2);
  return result;
}

}  // namespace

double jensen_shannon(const AttentionRow& p, const AttentionRow& q) {
  require<InputError>(!p.keys.empty() && !q.keys.empty(), "the divergence of rows with ", p.keys.size(), " and ",
                      q.keys.size(), " keys was asked for; a row without keys is not a distribution, leave it out");
  const double p_sum = sum_of(p.weights);
  const double q_sum = sum_of(q.weights);
  double sum = 0.0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < p.keys.size() || j < q.keys.size()) {
    const bool take_p = j == q.keys.size() || (i < p.keys.size() && p.keys[i] <= q.keys[j]);
    const bool take_q = i == p.keys.size() || (j < q.keys.size() && q.keys[j] <= p.keys[i]);
    const double p_weight = take_p ? p.weights[i++] / p_sum : 0.0;
    const double q_weight = take_q ? q.weights[j++] / q_sum : 0.0;
    sum += half_term(p_weight, q_weight) + half_term(q_weight, p_weight);
  }
  return std::clamp(sum, 0.0, std::numbers::ln2);  // rounding may leave the range by a last digit
}

HeadDivergence head_divergence(SequenceModel& model, const at::Tensor& tokens, const DivergenceOptions& options) {
  require<InputError>(tokens.dim() == 2 && tokens.size(0) >= 1 && tokens.size(1) >= 1,
                      "divergence of heads: tokens are ", tokens.sizes(), ", but must be [sequences, n]");
  require<InputError>(options.draws >= 1 && options.queries >= 0, "divergence of heads: draws is ", options.draws,
                      " and queries is ", options.queries, ", but must be at least 1 and 0");
  HeadDivergence result{.sequences = tokens.size(0), .length = tokens.size(1), .queries = 0, .layers = {}};
  std::vector<LayerSums> layers;
  for (std::int64_t sequence = 0; sequence < result.sequences; ++sequence) {
    const auto probes =
        model.probe(tokens.narrow(0, sequence, 1),
                    {.sample_ids = at::full({1}, sequence, at::kLong), .step = 0, .precision = options.precision});
    const std::vector<std::int64_t> queries = sampled_queries(
        {.first = 0, .length = result.length, .count = options.queries, .seed = options.seed, .sequence = sequence});
    result.queries = static_cast<std::int64_t>(queries.size());
    layers.resize(probes.size());
    for (std::size_t layer = 0; layer < probes.size(); ++layer) add_sequence(layers[layer], probes[layer], queries);
    if (options.progress) options.progress(sequence + 1, result.sequences);
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    result.layers.push_back(summary_of(layers[layer], result.queries, layer, options));
  }
  return result;
}

const std::array<PublishedDivergence, 10>& published_divergence() {
  static const std::array<PublishedDivergence, 10> table{{
      {{0.0038, 0.0018}, {0.4706, 0.0319}, {0.1579, 0.0576}},
      {{0.3071, 0.1217}, {0.6674, 0.0153}, {0.5820, 0.0104}},
      {{0.2164, 0.0803}, {0.5896, 0.0249}, {0.4015, 0.0121}},
      {{0.1163, 0.0336}, {0.6047, 0.0181}, {0.4144, 0.0264}},
      {{0.1840, 0.0562}, {0.6266, 0.0062}, {0.4191, 0.0879}},
      {{0.2284, 0.0225}, {0.6463, 0.0155}, {0.4687, 0.0449}},
      {{0.1901, 0.0525}, {0.6471, 0.0040}, {0.5175, 0.0469}},
      {{0.1566, 0.0685}, {0.5798, 0.0235}, {0.4350, 0.0139}},
      {{0.1638, 0.0739}, {0.5993, 0.0148}, {0.4268, 0.0291}},
      {{0.2095, 0.0560}, {0.6127, 0.0053}, {0.3581, 0.0019}},
  }};
  return table;
}

}  // namespace routing
