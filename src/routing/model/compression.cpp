#include "routing/model/compression.h"

#include "routing/core/error.h"
#include "routing/ops/dense/linear.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace routing {
namespace {

at::Tensor most_used_rows(const at::Tensor& rows, std::int64_t kept, const at::Tensor& usage) {
  const at::Tensor shares = usage.contiguous();
  const at::Tensor places = at::empty({rows.size(0), kept}, at::kLong);
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows.size(1)));
  for (std::int64_t stream = 0; stream < rows.size(0); ++stream) {
    std::iota(order.begin(), order.end(), 0);
    const at::Tensor of_stream = shares[stream].to(at::kDouble);
    const auto* share = of_stream.data_ptr<double>();
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return share[a] > share[b]; });
    std::sort(order.begin(), order.begin() + kept);
    std::copy_n(order.begin(), kept, places[stream].data_ptr<std::int64_t>());
  }
  return rows.gather(1, places.unsqueeze(2).expand({-1, -1, rows.size(2)}));
}

}  // namespace

at::Tensor initial_compression(std::int64_t width, std::int64_t rate, const at::TensorOptions& options) {
  return at::eye(width, options).repeat({1, rate}) / static_cast<double>(rate);
}

at::Tensor compressed_rows(const at::Tensor& rows, const MemoryConfig& memory, const CompressionInputs& inputs) {
  require<InputError>(rows.dim() == 3 && rows.size(1) % memory.rate == 0, "compression: rows are ", rows.sizes(),
                      ", but must be [streams, a multiple of memory.rate ", memory.rate, ", width]");
  const std::int64_t made = rows.size(1) / memory.rate;
  const auto neighbours = [&] { return rows.reshape({rows.size(0), made, memory.rate, rows.size(2)}); };
  switch (memory.compression) {
    case Compression::mean:
      return neighbours().mean(2);
    case Compression::max:
      return neighbours().amax(2);
    case Compression::convolution:
      return routing::linear(neighbours().flatten(2), inputs.weight);
    case Compression::most_used:
      break;
  }
  return most_used_rows(rows, made, inputs.usage);
}

}  // namespace routing
