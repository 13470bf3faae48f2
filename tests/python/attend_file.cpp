// Attention and its gradients by the C++ library alone, from a file of numbers to another: what the Python package is
// held against, bit for bit (python/tests/test_attend.py).
//
//   attend_file GIVEN ANSWER BATCH HEADS TOKENS DIM WINDOW
//
// GIVEN holds float32 q, k, v and the gradient of the output, each [batch, heads, tokens, dim]; ANSWER gets the output
// and the gradients of q, k and v.
#include "routing/attention/patterns/pattern.h"
#include "routing/ops/attend/attend.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <vector>

int main(int count, char** arguments) {
  using namespace routing;
  if (count != 8) return 2;
  const auto size = [&](int place) { return std::atoll(arguments[place]); };
  const std::vector<std::int64_t> shape{size(3), size(4), size(5), size(6)};
  std::ifstream given(arguments[1], std::ios::binary);
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 4; ++i) {
    at::Tensor tensor = at::empty(shape, at::kFloat);
    given.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    tensors.push_back(tensor.set_requires_grad(i < 3));
  }
  if (!given) return 1;
  const HeadGroupConfig group{.pattern = LocalPattern{.window = size(7)}, .heads = shape[1]};
  const Plan plan = make_pattern(group, {.dim = shape[3]})->plan({.layout = self_layout(shape[0], shape[1], shape[2])});
  const AttendResult result =
      attend(tensors[0], tensors[1], tensors[2], plan, {.scale = 1.0 / std::sqrt(static_cast<double>(shape[3]))});
  const auto gradients = torch::autograd::grad({result.output}, {tensors[0], tensors[1], tensors[2]}, {tensors[3]});
  std::ofstream answer(arguments[2], std::ios::binary);
  for (const at::Tensor& tensor : {result.output.detach(), gradients[0], gradients[1], gradients[2]}) {
    const at::Tensor rows = tensor.contiguous();
    answer.write(static_cast<const char*>(rows.data_ptr()), static_cast<std::streamsize>(rows.nbytes()));
  }
  return answer ? 0 : 1;
}
