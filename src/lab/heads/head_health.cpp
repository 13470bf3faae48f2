#include "lab/heads/head_health.h"

#include "lab/heads/probed_heads.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/evaluation/evaluation_mode.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <variant>

namespace routing {
namespace {

// Where the heads of a group of routed heads are kept in the result.
struct RoutedGroup {
  std::size_t layer;
  std::size_t group;
  std::size_t first;  // in the result
};

void count_plan(const Plan& plan, HeadHealth* heads) {
  const auto* offsets = plan.unit_offsets.data_ptr<std::int64_t>();
  const auto* rows = plan.query_index.offsets.data_ptr<std::int64_t>();
  for (std::int64_t unit = 0; unit < plan.num_units(); ++unit) {
    HeadHealth& head = heads[unit % plan.heads];
    for (std::int64_t group = offsets[unit]; group < offsets[unit + 1]; ++group) {
      head.members[static_cast<std::size_t>(group - offsets[unit])] +=
          static_cast<double>(group_range(plan, group).num_queries());
    }
    for (std::int64_t row = unit * plan.num_queries; row < (unit + 1) * plan.num_queries; ++row) {
      const std::int64_t clusters = rows[row + 1] - rows[row];
      head.tokens += 1.0;
      head.unrouted += clusters == 0 ? 1.0 : 0.0;
      head.overlapping += clusters > 1 ? 1.0 : 0.0;
    }
  }
}

// What the selection has counted since the evaluation began.
void take_totals(const StepTotals& totals, HeadHealth* heads) {
  for (std::size_t head = 0; head < totals.totals[0].size(); ++head) {
    const ClusterTotals both = totals.pooled(static_cast<std::int64_t>(head));
    heads[head].moving.assign(both.moving.begin(), both.moving.end());
    heads[head].fallback = static_cast<double>(totals.totals[0][head].fallback);
  }
}

double relative_entropy_of(const std::vector<double>& counts) {
  if (counts.size() < 2) return 1.0;
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (all == 0.0) return 0.0;
  double entropy = 0.0;
  for (const double count : counts) {
    if (count > 0.0) entropy -= count / all * std::log(count / all);
  }
  return entropy / std::log(static_cast<double>(counts.size()));
}

// Means over queries, of all sequences so far.
struct MeanWeight {
  double sum = 0.0;
  std::int64_t rows = 0;
};

void add_rows(const ProbedHead& head, const std::vector<std::int64_t>& queries, MeanWeight& mean) {
  std::vector<double> largest(queries.size(), 0.0);
  parallel_for(0, static_cast<std::int64_t>(queries.size()), 8, [&](std::int64_t first, std::int64_t last) {
    for (auto query = static_cast<std::size_t>(first); query < static_cast<std::size_t>(last); ++query) {
      const AttentionRow row = head.row(0, queries[query]);
      if (!row.weights.empty()) largest[query] = *std::max_element(row.weights.begin(), row.weights.end());
    }
  });
  // In the order of the queries, whatever the threads did. A row that reads has a weight above 0.
  for (const double weight : largest) {
    mean.sum += weight;
    mean.rows += weight > 0.0 ? 1 : 0;
  }
}

// Empty ones for all heads of a group.
void add_heads(const HeadGroupConfig& group, const HeadHealth& place, std::vector<HeadHealth>& heads) {
  const auto& pattern = std::get<RoutingPattern>(group.pattern);
  for (std::int64_t head = 0; head < group.heads; ++head) {
    heads.push_back(place);
    heads.back().head += head;
    heads.back().members.assign(static_cast<std::size_t>(pattern.clusters), 0.0);
    heads.back().dead_share = pattern.dead_share;
  }
}

void add_remembered(const HeadHealth& place, const HeadGroupConfig& group, const Centroids& centroids,
                    std::vector<HeadHealth>& heads) {
  const std::size_t first = heads.size();
  add_heads(group, place, heads);
  const at::Tensor counts = centroids.host().counts.contiguous();
  const auto* values = counts.data_ptr<float>();
  for (std::size_t head = first; head < heads.size(); ++head) {
    for (double& count : heads[head].members) count = static_cast<double>(*values++);
    heads[head].moving = heads[head].members;
    heads[head].tokens = heads[head].memberships();
  }
}

}  // namespace

double HeadHealth::memberships() const {
  return std::accumulate(members.begin(), members.end(), 0.0);
}

double HeadHealth::entropy() const {
  return relative_entropy_of(members);
}

double HeadHealth::moving_entropy() const {
  return relative_entropy_of(moving);
}

std::int64_t HeadHealth::dead() const {
  const double least = dead_share * tokens / static_cast<double>(std::max<std::size_t>(1, members.size()));
  return std::count_if(members.begin(), members.end(), [&](double count) { return count < least; });
}

double HeadHealth::smallest() const {
  return members.empty() ? 0.0 : *std::min_element(members.begin(), members.end());
}

double HeadHealth::largest() const {
  return members.empty() ? 0.0 : *std::max_element(members.begin(), members.end());
}

std::vector<HeadHealth> head_health_of_tokens(SequenceModel& model, TokenView tokens,
                                              const LikelihoodOptions& options) {
  std::vector<HeadHealth> heads;
  std::vector<RoutedGroup> routed;
  for (std::size_t layer = 0; layer < model.states().size(); ++layer) {
    const AttentionConfig& config = model.block(layer)->attention()->config();
    std::int64_t first_head = 0;
    for (std::size_t group = 0; group < config.head_groups.size(); ++group) {
      if (std::holds_alternative<RoutingPattern>(config.head_groups[group].pattern)) {
        routed.push_back({layer, group, heads.size()});
        add_heads(config.head_groups[group], {.attention = config.name, .head = first_head}, heads);
      }
      first_head += config.head_groups[group].heads;
    }
  }
  if (routed.empty()) return heads;
  LikelihoodOptions counting = options;
  // After each batch the model still holds its plans.
  counting.progress = [&](std::int64_t done, std::int64_t all) {
    for (const RoutedGroup& group : routed) {
      count_plan(model.states()[group.layer].self.plans[group.group], &heads[group.first]);
      take_totals(model.block(group.layer)->attention()->centroids(group.group)->evaluated(), &heads[group.first]);
    }
    if (options.progress) options.progress(done, all);
  };
  token_likelihood(model, tokens, counting);
  return heads;
}

void add_largest_weights(SequenceModel& model, const at::Tensor& tokens, std::int64_t queries,
                         std::vector<HeadHealth>& heads) {
  const EvaluationMode mode(model);
  std::vector<MeanWeight> means(heads.size());
  for (std::int64_t sequence = 0; sequence < tokens.size(0); ++sequence) {
    const auto probes =
        model.probe(tokens.narrow(0, sequence, 1), {.sample_ids = at::full({1}, sequence, at::kLong), .step = 0});
    const std::vector<std::int64_t> looked_at =
        sampled_queries({.length = tokens.size(1), .count = queries, .sequence = sequence});
    std::size_t routed = 0;
    for (const std::vector<GroupProbe>& layer : probes) {
      for (const ProbedHead& head : heads_of(layer)) {
        if (head.pattern() != "routing") continue;
        require<InputError>(routed < heads.size(), "the model has more routed heads than the ", heads.size(),
                            " that are to be looked at; take those of head_health_of_tokens");
        add_rows(head, looked_at, means[routed++]);
      }
    }
    require<InputError>(routed == heads.size(), "the model has ", routed, " routed heads, but ", heads.size(),
                        " are to be looked at; take those of head_health_of_tokens");
  }
  for (std::size_t head = 0; head < heads.size(); ++head) {
    if (means[head].rows == 0) continue;
    heads[head].mean_largest_weight = means[head].sum / static_cast<double>(means[head].rows);
  }
}

std::vector<HeadHealth> head_health_of_buffers(SequenceModel& model) {
  std::vector<HeadHealth> heads;
  for (const SequenceModel::Site& site : model.attentions()) {
    MultiHeadAttention attention = site.attention;
    const AttentionConfig& config = attention->config();
    std::int64_t first_head = 0;
    for (std::size_t index = 0; index < config.head_groups.size(); ++index) {
      const HeadGroupConfig& group = config.head_groups[index];
      const auto* pattern = std::get_if<RoutingPattern>(&group.pattern);
      if (pattern != nullptr && pattern->update == CentroidUpdate::mean) {
        add_remembered({.attention = config.name, .head = first_head}, group, *attention->centroids(index), heads);
      }
      first_head += group.heads;
    }
  }
  return heads;
}

}  // namespace routing
