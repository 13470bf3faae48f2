#include "lab/heads/head_reading.h"

#include "routing/core/error.h"

#include <algorithm>

namespace routing {
namespace {

// Only routing attention leaves choices beside its plan.
bool is_routed(const GroupProbe& probe) {
  return probe.plan.query_choice.defined();
}

// The groups of a query's unit that it is a member of, counted from the first group of the unit.
std::vector<std::int32_t> clusters_of_query(const GroupProbe& probe, std::int64_t head, std::int64_t query) {
  const Plan& plan = probe.plan;
  const auto* rows = plan.query_index.offsets.data_ptr<std::int64_t>();
  const auto* groups = plan.query_index.group.data_ptr<std::int64_t>();
  const std::int64_t first_group = plan.unit_offsets.data_ptr<std::int64_t>()[head];
  const std::int64_t row = head * plan.num_queries + query;
  std::vector<std::int32_t> clusters;
  for (std::int64_t entry = rows[row]; entry < rows[row + 1]; ++entry) {
    clusters.push_back(static_cast<std::int32_t>(groups[entry] - first_group));
  }
  return clusters;
}

std::int64_t number_of_heads(const std::vector<GroupProbe>& layer) {
  std::int64_t heads = 0;
  for (const GroupProbe& group : layer) heads += group.heads();
  return heads;
}

void require_there(const ModelProbes& probes, const ReadingQuestion& question) {
  require<ConfigError>(!probes.empty() && !probes[0].empty(), "there is no attention to look at");
  const auto layers = static_cast<std::int64_t>(probes.size());
  const std::int64_t layer = question.layer.value_or(0);
  require<ConfigError>(layer >= 0 && layer < layers, "there is no layer ", layer, "; the model has layers 0 to ",
                       layers - 1);
  const std::int64_t head = question.head.value_or(0);
  const std::int64_t heads = number_of_heads(probes[static_cast<std::size_t>(layer)]);
  require<ConfigError>(head >= 0 && head < heads, "there is no head ", head, "; the layer has heads 0 to ", heads - 1);
  const std::int64_t positions = probes[0][0].num_queries();
  require<ConfigError>(question.token >= 0 && question.token < positions, "there is no position ", question.token,
                       "; the sequence has positions 0 to ", positions - 1);
}

HeadReading reading_of(const GroupProbe& group, std::int64_t layer, std::int64_t head, std::int64_t query) {
  HeadReading reading{
      .layer = layer, .head = group.first_head + head, .pattern = group.pattern_name, .routed = is_routed(group)};
  if (reading.routed) reading.clusters = clusters_of_query(group, head, query);
  const AttentionRow row = attention_row(group, 0, head, query);
  for (std::size_t i = 0; i < row.keys.size(); ++i) {
    reading.reads.push_back({.token = std::int64_t{row.keys[i]} - 1, .weight = row.weights[i]});
  }
  return reading;
}

}  // namespace

std::vector<ReadToken> HeadReading::top(std::size_t k) const {
  std::vector<ReadToken> sorted = reads;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ReadToken& a, const ReadToken& b) { return a.weight > b.weight; });
  sorted.resize(std::min(k, sorted.size()));
  return sorted;
}

std::vector<HeadReading> read_heads(const ModelProbes& probes, const ReadingQuestion& question) {
  require_there(probes, question);
  std::vector<HeadReading> readings;
  for (std::size_t layer = 0; layer < probes.size(); ++layer) {
    const auto number = static_cast<std::int64_t>(layer);
    if (question.layer && *question.layer != number) continue;
    for (const GroupProbe& group : probes[layer]) {
      for (std::int64_t head = 0; head < group.heads(); ++head) {
        if (question.head && *question.head != group.first_head + head) continue;
        readings.push_back(reading_of(group, number, head, question.token));
      }
    }
  }
  return readings;
}

std::vector<std::vector<std::int32_t>> token_clusters(const ModelProbes& probes, std::int64_t layer,
                                                      std::int64_t head) {
  require_there(probes, {.layer = layer, .head = head});
  std::vector<std::vector<std::int32_t>> clusters;
  for (const GroupProbe& group : probes[static_cast<std::size_t>(layer)]) {
    const bool holds = head >= group.first_head && head < group.first_head + group.heads();
    if (!holds || !is_routed(group)) continue;
    for (std::int64_t query = 0; query < group.num_queries(); ++query) {
      clusters.push_back(clusters_of_query(group, head - group.first_head, query));
    }
  }
  return clusters;
}

}  // namespace routing
