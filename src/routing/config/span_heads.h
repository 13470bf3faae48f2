// Heads that learn how far back they read (SpanPattern). The keys of a plan are those of its farthest-sighted head, so
// each span has a head group of its own, and neighbouring groups that are alike share one pair of relative tables, as
// the heads of one group do.
#pragma once

#include "routing/config/attention.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace routing {

// These heads as the groups of a layer: one for each head that has a span of its own, otherwise the one group.
std::vector<HeadGroupConfig> groups_by_span(const HeadGroupConfig& group);
// The group whose relative tables group `index` reads: the first of neighbouring span groups that are alike, or itself.
std::size_t table_group(const std::vector<HeadGroupConfig>& groups, std::size_t index);
// Heads of the layer that have a span.
std::int64_t count_span_heads(const std::vector<HeadGroupConfig>& groups);

}  // namespace routing
