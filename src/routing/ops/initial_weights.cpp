#include "routing/ops/initial_weights.h"

#include "routing/ops/random_fill.h"

#include <cmath>

namespace routing {
namespace {

constexpr double kVarianceScale = 0.2;

}  // namespace

at::Tensor initial_weight(std::int64_t rows, std::int64_t columns, std::uint64_t key,
                          const at::TensorOptions& options) {
  at::Tensor weight = at::empty({rows, columns}, options);
  const double limit = std::sqrt(3.0 * kVarianceScale * 2.0 / static_cast<double>(rows + columns));
  fill_uniform(weight, -limit, limit, RandomStream(key));
  return weight;
}

}  // namespace routing
