// The heads of a probed layer one by one, and the queries that are looked at.
#pragma once

#include "routing/attention/head_probe.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// Heads that read what is near, and heads of any other pattern.
enum class HeadKind { local, content };

struct ProbedHead {
  const GroupProbe* probe = nullptr;
  std::int64_t head = 0;  // inside its group

  const std::string& pattern() const { return probe->pattern_name; }
  HeadKind kind() const { return head_kind(pattern()); }
  static HeadKind head_kind(const std::string& pattern) {
    return pattern == "local" ? HeadKind::local : HeadKind::content;
  }
  AttentionRow row(std::int64_t sequence, std::int64_t query) const {
    return attention_row(*probe, sequence, head, query);
  }
};

// All heads of a layer in the order of their numbers. The probes must outlive them.
std::vector<ProbedHead> heads_of(const std::vector<GroupProbe>& layer);

// Which positions of first … length - 1 are looked at in one sequence: `count` of them at random, ascending, or all if
// there are no more or count is 0. Every head of every layer is asked for the same ones.
struct QuerySample {
  std::int64_t first = 0;
  std::int64_t length = 0;
  std::int64_t count = 0;
  std::uint64_t seed = 1;
  std::int64_t sequence = 0;
};
std::vector<std::int64_t> sampled_queries(const QuerySample& sample);

}  // namespace routing
