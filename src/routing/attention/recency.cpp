#include "routing/attention/recency.h"

#include <cmath>

namespace routing {

double recency_of_key(std::int64_t head, std::int64_t heads, std::int64_t position, double scale) {
  const double slope = std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
  return slope * static_cast<double>(position) / scale;
}

at::Tensor recency_column(std::int64_t heads, std::int64_t count, double scale, const at::TensorOptions& options) {
  at::Tensor column = at::empty({1, heads, count, 1}, at::kDouble);
  auto* value = column.data_ptr<double>();
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t position = 0; position < count; ++position) {
      *value++ = recency_of_key(head, heads, position, scale);
    }
  }
  return column.to(options);
}

at::Tensor with_one(const at::Tensor& queries) {
  const at::Tensor one = at::ones({1, 1, 1, 1}, queries.options().requires_grad(false));
  return at::cat({queries, one.expand({queries.size(0), queries.size(1), queries.size(2), 1})}, 3);
}

at::Tensor with_zero(const at::Tensor& table) {
  if (!table.defined()) return table;
  return at::cat({table, at::zeros({table.size(0), 1}, table.options().requires_grad(false))}, 1);
}

}  // namespace routing
