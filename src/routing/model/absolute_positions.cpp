#include "routing/model/absolute_positions.h"

#include "routing/core/error.h"
#include "routing/ops/embedding.h"
#include "routing/ops/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace routing {

at::Tensor sinusoids(std::span<const std::int64_t> places, std::int64_t width, const at::TensorOptions& options) {
  // By one function for every element: a vector of sines depends on how it is cut.
  at::Tensor table = at::empty({static_cast<std::int64_t>(places.size()), width}, at::kDouble);
  auto* value = table.data_ptr<double>();
  for (const std::int64_t place : places) {
    for (std::int64_t column = 0; column < width; ++column) {
      const double exponent = static_cast<double>(column / 2 * 2) / static_cast<double>(width);
      const double angle = static_cast<double>(place) / std::pow(10000.0, exponent);
      *value++ = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return table.to(options);
}

at::Tensor sinusoids(std::int64_t length, std::int64_t width, const at::TensorOptions& options) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(length));
  std::iota(places.begin(), places.end(), 0);
  return sinusoids(places, width, options);
}

std::int64_t longest_of_positions(const ExperimentConfig& config) {
  const PositionKind kind = config.model.positions;
  return kind == PositionKind::learned || kind == PositionKind::factored ? config.train.sequence_length : 0;
}

AbsolutePositions::AbsolutePositions(torch::nn::Module& owner, const ModelConfig& config, const LayerPlace& place,
                                     std::int64_t longest, const at::TensorOptions& options)
    : kind_(config.positions), part_(place.part), longest_(longest), stride_(config.position_stride) {
  const auto table = [&](const char* name, std::int64_t rows) {
    return owner.register_parameter(
        name, initial_weight({rows, config.width, config.initial_scale}, place.key(name), options));
  };
  if (kind_ == PositionKind::learned) table_ = table("positions", longest);
  if (kind_ == PositionKind::factored) {
    table_ = table("position_cells", (longest + stride_ - 1) / stride_);
    places_ = table("position_places", std::min(stride_, longest));
  }
}

at::Tensor AbsolutePositions::added_to(const at::Tensor& x, std::span<const std::int64_t> places) const {
  if (kind_ == PositionKind::none) return x;
  const auto as_rows = [&](const at::Tensor& rows) { return rows.view({-1, x.size(1), x.size(2)}); };
  if (kind_ == PositionKind::sinusoidal) {
    return x * std::sqrt(static_cast<double>(x.size(2))) +
           as_rows(sinusoids(places, x.size(2), x.options().requires_grad(false)));
  }
  for (const std::int64_t place : places) {
    require<InputError>(place < longest_, part_, ": a sequence of ", place + 1,
                        " tokens, but model.positions = ", to_string(kind_), " has tables for ", longest_,
                        " (train.source_length, train.sequence_length); use shorter sequences, or a model with "
                        "model.positions = sinusoidal");
  }
  const auto rows_of = [&](const at::Tensor& table, const auto& row_of) {
    at::Tensor ids = at::empty({static_cast<std::int64_t>(places.size())}, at::kLong);
    std::transform(places.begin(), places.end(), ids.data_ptr<std::int64_t>(), row_of);
    return as_rows(routing::embedding(ids, table));
  };
  if (kind_ == PositionKind::learned) return x + rows_of(table_, [](std::int64_t place) { return place; });
  return x + rows_of(table_, [&](std::int64_t place) { return place / stride_; }) +
         rows_of(places_, [&](std::int64_t place) { return place % stride_; });
}

}  // namespace routing
