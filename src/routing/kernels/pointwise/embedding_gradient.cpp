#include "routing/kernels/pointwise/embedding_gradient.h"

#include "routing/core/parallel.h"

#include <algorithm>
#include <vector>

namespace routing::kernels {
namespace {

template <class Number>
void sum_by_id(const std::int64_t* ids, const Number* outputs_gradient, const LookupShape& shape, Number* gradient) {
  // Positions sorted by id, those of one id in their order (a counting sort).
  std::vector<std::int64_t> ends(static_cast<std::size_t>(shape.table_rows) + 1, 0);
  for (std::int64_t position = 0; position < shape.count; ++position)
    ++ends[static_cast<std::size_t>(ids[position]) + 1];
  for (std::size_t id = 1; id < ends.size(); ++id) ends[id] += ends[id - 1];
  std::vector<std::int64_t> positions(static_cast<std::size_t>(shape.count));
  std::vector<std::int64_t> next(ends.begin(), ends.end() - 1);
  for (std::int64_t position = 0; position < shape.count; ++position) {
    positions[static_cast<std::size_t>(next[static_cast<std::size_t>(ids[position])]++)] = position;
  }
  constexpr std::int64_t kGrain = 16;
  parallel_for(0, shape.table_rows, kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t id = first; id < last; ++id) {
      Number* row = gradient + id * shape.width;
      std::fill_n(row, shape.width, Number{0});
      const std::int64_t end = ends[static_cast<std::size_t>(id) + 1];
      for (std::int64_t index = ends[static_cast<std::size_t>(id)]; index < end; ++index) {
        const Number* values = outputs_gradient + positions[static_cast<std::size_t>(index)] * shape.width;
        for (std::int64_t i = 0; i < shape.width; ++i) row[i] += values[i];
      }
    }
  });
}

}  // namespace

void embedding_gradient(const std::int64_t* ids, const float* outputs_gradient, const LookupShape& shape,
                        float* gradient) {
  sum_by_id(ids, outputs_gradient, shape, gradient);
}

void embedding_gradient(const std::int64_t* ids, const double* outputs_gradient, const LookupShape& shape,
                        double* gradient) {
  sum_by_id(ids, outputs_gradient, shape, gradient);
}

}  // namespace routing::kernels
