#include "bench/matmul_rates.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

namespace routing {
namespace {

dnnl::matmul::primitive_desc onednn_matmul(const dnnl::memory::desc& square, const dnnl::engine& engine) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, square, square, square};
#else
  return {dnnl::matmul::desc(square, square, square), engine};
#endif
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

MatmulRates measure_matmul(std::int64_t size, int repetitions) {
  const at::Tensor first = at::linspace(-1.0, 1.0, size * size).sin_().view({size, size});
  const at::Tensor second = at::linspace(-2.0, 1.0, size * size).cos_().view({size, size});
  at::Tensor blas_result = at::empty({size, size});
  at::Tensor onednn_result = at::empty({size, size});

  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::memory::desc square({size, size}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
  const dnnl::matmul matmul(onednn_matmul(square, engine));
  const auto memory_of = [&](const at::Tensor& tensor) { return dnnl::memory(square, engine, tensor.data_ptr()); };
  const std::unordered_map<int, dnnl::memory> arguments = {{DNNL_ARG_SRC, memory_of(first)},
                                                           {DNNL_ARG_WEIGHTS, memory_of(second)},
                                                           {DNNL_ARG_DST, memory_of(onednn_result)}};
  const auto through_blas = [&] { at::mm_out(blas_result, first, second); };
  const auto through_onednn = [&] {
    matmul.execute(stream, arguments);
    stream.wait();
  };

  through_blas();
  through_onednn();
  std::vector<double> blas_seconds;
  std::vector<double> onednn_seconds;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    blas_seconds.push_back(seconds_of(through_blas));
    onednn_seconds.push_back(seconds_of(through_onednn));
  }
  const double gigaflops = 2.0 * static_cast<double>(size * size * size) * 1e-9;
  // Sums of `size` products of numbers below 1 in another order: the error grows with the square root of their number.
  const bool agree = at::allclose(blas_result, onednn_result, /*rtol=*/1e-4, /*atol=*/1e-3);
  return {.size = size,
          .blas_gflops = gigaflops / median(blas_seconds),
          .onednn_gflops = gigaflops / median(onednn_seconds),
          .results_agree = agree};
}

}  // namespace routing
