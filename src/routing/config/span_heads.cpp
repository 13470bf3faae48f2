#include "routing/config/span_heads.h"

namespace routing {

std::vector<HeadGroupConfig> groups_by_span(const HeadGroupConfig& group) {
  if (!std::holds_alternative<SpanPattern>(group.pattern)) return {group};
  HeadGroupConfig one = group;
  one.heads = 1;
  return std::vector<HeadGroupConfig>(static_cast<std::size_t>(group.heads), one);
}

std::size_t table_group(const std::vector<HeadGroupConfig>& groups, std::size_t index) {
  const HeadGroupConfig& group = groups.at(index);
  if (!std::holds_alternative<SpanPattern>(group.pattern)) return index;
  while (index > 0 && groups[index - 1] == group) --index;
  return index;
}

std::int64_t count_span_heads(const std::vector<HeadGroupConfig>& groups) {
  std::int64_t heads = 0;
  for (const HeadGroupConfig& group : groups) {
    if (std::holds_alternative<SpanPattern>(group.pattern)) heads += group.heads;
  }
  return heads;
}

}  // namespace routing
