#include "routing/attention/patterns/recency.h"

#include <cmath>

namespace routing {

double recency_slope(const PatternConfig& pattern, std::int64_t head, std::int64_t heads) {
  const double exponent = std::holds_alternative<LocalPattern>(pattern) ? 8.0 : 16.0;
  return std::exp2(-exponent * static_cast<double>(head % heads + 1) / static_cast<double>(heads));
}

std::vector<double> recency_slopes(const AttentionConfig& layer, std::size_t group) {
  std::int64_t first_head = 0;
  for (std::size_t before = 0; before < group; ++before) first_head += layer.head_groups[before].heads;
  const HeadGroupConfig& mine = layer.head_groups.at(group);
  std::vector<double> slopes;
  if (!mine.recency) return slopes;
  const std::int64_t heads = layer.recency_heads.value_or(total_heads(layer));
  for (std::int64_t head = first_head; head < first_head + mine.heads; ++head) {
    slopes.push_back(recency_slope(mine.pattern, head, heads));
  }
  return slopes;
}

at::Tensor slopes_for_attend(const std::vector<double>& slopes, const at::TensorOptions& options) {
  return slopes.empty() ? at::Tensor() : at::tensor(slopes, at::kDouble).to(options);
}

}  // namespace routing
