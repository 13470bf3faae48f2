#include "routing/ops/random_fill.h"

namespace routing {
namespace {

template <class Draw>
void fill(at::Tensor& tensor, const Draw& draw) {
  if (tensor.is_meta()) return;
  const at::NoGradGuard no_gradient;
  at::Tensor values = at::empty(tensor.sizes(), at::kDouble);
  auto* value = values.data_ptr<double>();
  for (std::int64_t index = 0; index < values.numel(); ++index) value[index] = draw();
  tensor.copy_(values);
}

}  // namespace

void fill_uniform(at::Tensor tensor, double low, double high, RandomStream stream) {
  fill(tensor, [&] { return low + (high - low) * stream.uniform(); });
}

void fill_normal(at::Tensor tensor, double mean, double deviation, RandomStream stream) {
  fill(tensor, [&] { return mean + deviation * stream.normal(); });
}

}  // namespace routing
