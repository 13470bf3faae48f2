// Attention and its gradients by the C++ library alone, from a file of numbers to another: what the Python package is
// held against, bit for bit (python/tests/test_attend.py).
//
//   attend_file GIVEN ANSWER BATCH HEADS TOKENS DIM WINDOW [REPEATS THREADS]
//
// GIVEN holds float32 q, k, v and the gradient of the output, each [batch, heads, tokens, dim]; ANSWER gets the output
// and the gradients of q, k and v. With REPEATS it prints the median seconds of so many more passes, plans included,
// for scripts/python-overhead.
#include "lab/measure/memory.h"
#include "routing/attention/patterns/pattern.h"
#include "routing/core/parallel.h"
#include "routing/ops/attend/attend.h"
#include "routing/ops/tensor_memory.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace {

using namespace routing;

struct Work {
  std::vector<at::Tensor> tensors = {};  // q, k, v, gradient of the output
  std::int64_t window = 0;

  // The output and the gradients of q, k and v.
  std::vector<at::Tensor> pass() const {
    const at::IntArrayRef shape = tensors[0].sizes();
    const HeadGroupConfig group{.pattern = LocalPattern{.window = window}, .heads = shape[1]};
    const Plan plan =
        make_pattern(group, {.dim = shape[3]})->plan({.layout = self_layout(shape[0], shape[1], shape[2])});
    const AttendResult result =
        attend(tensors[0], tensors[1], tensors[2], plan, {.scale = 1.0 / std::sqrt(static_cast<double>(shape[3]))});
    std::vector<at::Tensor> answer =
        torch::autograd::grad({result.output}, {tensors[0], tensors[1], tensors[2]}, {tensors[3]});
    answer.insert(answer.begin(), result.output.detach());
    return answer;
  }

  double median_seconds(std::int64_t repeats) const {
    std::vector<double> seconds;
    for (std::int64_t i = 0; i < repeats; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      pass();
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 8 && count != 10) return 2;
  const auto number = [&](int place) { return std::atoll(arguments[place]); };
  if (count == 10) {
    set_num_threads(static_cast<int>(number(9)));
    reuse_tensor_memory();
  }
  std::ifstream given(arguments[1], std::ios::binary);
  Work work{.window = number(7)};
  for (int i = 0; i < 4; ++i) {
    at::Tensor tensor = at::empty({number(3), number(4), number(5), number(6)}, at::kFloat);
    given.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    work.tensors.push_back(tensor.set_requires_grad(i < 3));
  }
  if (!given) return 1;
  std::ofstream answer(arguments[2], std::ios::binary);
  std::vector<at::Tensor> answers;
  const std::int64_t peak =
      bench::peak_bytes_above(bench::resident_bytes(), [&] { answers = work.pass(); }).value_or(-1);
  for (const at::Tensor& tensor : answers) {
    const at::Tensor rows = tensor.contiguous();
    answer.write(static_cast<const char*>(rows.data_ptr()), static_cast<std::streamsize>(rows.nbytes()));
  }
  if (count == 10) std::printf("%.6f %lld\n", work.median_seconds(number(8)), static_cast<long long>(peak));
  return answer ? 0 : 1;
}
