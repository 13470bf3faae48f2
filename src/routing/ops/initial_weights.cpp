#include "routing/ops/initial_weights.h"

#include "routing/ops/random_fill.h"

#include <cmath>

namespace routing {

at::Tensor initial_weight(const InitialWeight& weight, std::uint64_t key, const at::TensorOptions& options) {
  at::Tensor values = at::empty({weight.rows, weight.columns}, options);
  const std::int64_t fan_rows = weight.rows_of_one > 0 ? weight.rows_of_one : weight.rows;
  const double mean_fan = 0.5 * static_cast<double>(fan_rows + weight.columns);
  const double limit = std::sqrt(3.0 * weight.scale / mean_fan);
  fill_uniform(values, -limit, limit, RandomStream(key));
  return values;
}

}  // namespace routing
