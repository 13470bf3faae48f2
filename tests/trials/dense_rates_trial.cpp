// How fast are dense layers? GFLOP/s of routing::linear in both precisions and of at::linear, forward and both
// gradients, alternating, median of 7. Time is wall time, or with a second argument "cpu" the processor time of the
// whole process, which other programs on the machine change less. Run by hand:
//   OMP_WAIT_POLICY=passive build/release/tests/dense_rates_trial [threads] [cpu]
#include "routing/core/parallel.h"
#include "routing/ops/dropout.h"
#include "routing/ops/layer_norm.h"
#include "routing/ops/linear.h"
#include "routing/ops/vocabulary_loss.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace routing {
namespace {

constexpr int kRepetitions = 7;

bool count_processor_time = false;

double now() {
  timespec time{};
  clock_gettime(count_processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const std::function<void()>& work) {
  const double begin = now();
  work();
  return now() - begin;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Candidate {
  const char* name;
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> product;
  std::vector<double> forward = {};
  std::vector<double> data = {};
  std::vector<double> weight = {};
};

void measure(std::int64_t rows, std::int64_t in, std::int64_t out) {
  const at::Tensor x = at::randn({rows, in});
  const at::Tensor w = at::randn({out, in}) * 0.05;
  const at::Tensor dy = at::randn({rows, out});
  const auto with = [](MatmulPrecision precision) {
    return
        [=](const at::Tensor& a, const at::Tensor& b) { return routing::linear(a, b, {}, {.precision = precision}); };
  };
  std::vector<Candidate> candidates{{"fp32", with(MatmulPrecision::fp32)},
                                    {"bf16", with(MatmulPrecision::bf16)},
                                    {"at::linear", [](const auto& a, const auto& b) { return at::linear(a, b); }}};
  for (int repetition = -1; repetition < kRepetitions; ++repetition) {
    for (Candidate& candidate : candidates) {
      const at::Tensor xg = x.detach().requires_grad_();
      const at::Tensor wg = w.detach().requires_grad_();  // a new tensor: packing is part of what is timed
      const double forward = seconds_of([&] {
        const at::NoGradGuard no_gradient;
        candidate.product(x, wg);
      });
      const at::Tensor for_data = candidate.product(xg, w);
      const at::Tensor for_weight = candidate.product(x, wg);
      const double data = seconds_of([&] { torch::autograd::grad({for_data}, {xg}, {dy}); });
      const double weight = seconds_of([&] { torch::autograd::grad({for_weight}, {wg}, {dy}); });
      if (repetition < 0) continue;
      candidate.forward.push_back(forward);
      candidate.data.push_back(data);
      candidate.weight.push_back(weight);
    }
  }
  const double work = 2e-9 * static_cast<double>(rows * in * out);
  for (const Candidate& candidate : candidates) {
    std::printf("%ld x %ld x %ld  %-10s  forward %6.1f  dx %6.1f  dW %6.1f GFLOP/s\n", rows, in, out, candidate.name,
                work / median(candidate.forward), work / median(candidate.data), work / median(candidate.weight));
  }
}

void measure_rest() {
  const at::Tensor x = at::randn({8, 1024, 256});
  const at::Tensor gain = at::ones({256}).requires_grad_();
  const auto report = [](const char* name, const std::function<void()>& work) {
    work();
    std::vector<double> seconds;
    for (int repetition = 0; repetition < kRepetitions; ++repetition) seconds.push_back(seconds_of(work));
    std::printf("%-34s %8.2f ms\n", name, 1e3 * median(seconds));
  };
  report("layer_norm 8192x256", [&] { layer_norm(x, gain, gain, 1e-5); });
  report("at::layer_norm 8192x256", [&] { at::layer_norm(x, {256}, gain, gain, 1e-5); });
  const at::Tensor xg = x.detach().requires_grad_();
  report("layer_norm and gradient", [&] { layer_norm(xg, gain, gain, 1e-5).sum().backward(); });
  report("at::layer_norm and gradient", [&] { at::layer_norm(xg, {256}, gain, gain, 1e-5).sum().backward(); });
  report("dropout 8192x256", [&] { dropout(x, {.probability = 0.1, .key = 1}); });
  report("at::dropout 8192x256", [&] { at::dropout(x, 0.1, true); });
  const at::Tensor hidden = at::randn({2048, 256}).requires_grad_();
  const at::Tensor weight = (at::randn({32768, 256}) * 0.05).requires_grad_();
  const at::Tensor targets = at::arange(2048, at::kLong);
  report("vocabulary_loss 2048x256x32768 fp32", [&] { vocabulary_loss(hidden, weight, {}, targets); });
  report("  and gradient", [&] { vocabulary_loss(hidden, weight, {}, targets).sum().backward(); });
  report("  and gradient, bf16",
         [&] { vocabulary_loss(hidden, weight, {}, targets, {.precision = MatmulPrecision::bf16}).sum().backward(); });
}

}  // namespace
}  // namespace routing

int main(int count, char** arguments) {
  if (count > 1) routing::set_num_threads(std::atoi(arguments[1]));
  routing::count_processor_time = count > 2 && std::string(arguments[2]) == "cpu";
  at::set_num_threads(routing::num_threads());
  std::printf("%d threads\n", routing::num_threads());
  routing::measure(8192, 256, 256);
  routing::measure(8192, 256, 1024);
  routing::measure(8192, 512, 2048);
  routing::measure(64, 256, 1024);
  routing::measure_rest();
}
