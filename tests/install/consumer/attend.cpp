// Local attention over nine tokens with the installed library, against a softmax over a mask.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <routing/attention/patterns/position_patterns.h>
#include <routing/ops/attend/attend.h>

int main() {
  const at::Tensor q = at::randn({1, 2, 9, 8});
  const at::Tensor k = at::randn({1, 2, 9, 8});
  const at::Tensor v = at::randn({1, 2, 9, 8});
  const routing::TokenLayout layout = routing::self_layout(1, 2, 9);
  const routing::Plan plan = routing::local_plan(layout, {.window = 4}, /*causal=*/true, routing::SelfRule::allowed);
  const at::Tensor ours = routing::attend(q, k, v, plan, {.scale = 1.0 / std::sqrt(8.0)}).output;

  const at::Tensor place = at::arange(9);
  const at::Tensor distance = place.unsqueeze(1) - place;
  const at::Tensor hidden = at::logical_or(distance < 0, distance >= 4);
  const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(8.0);
  const at::Tensor expected = at::matmul(scores.masked_fill(hidden, -INFINITY).softmax(-1), v);
  const double difference = (ours - expected).abs().max().item<double>();
  std::printf("largest difference %.1e\n", difference);
  return difference < 1e-5 ? 0 : 1;
}
