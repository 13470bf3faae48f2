#include "bench/matmul_rates.h"

#include "lab/measure/gemm_rate.h"
#include "lab/measure/runner.h"

#include <ATen/ATen.h>

#include <vector>

namespace routing {

MatmulRates measure_matmul(std::int64_t size, int repetitions) {
  bench::GemmProduct onednn({.rows = size, .depth = size, .columns = size}, MatmulPrecision::fp32);
  at::Tensor blas_result = at::empty({size, size});
  const std::vector<bench::Timing> timings =
      bench::run_in_turns({{.name = "BLAS", .run = [&] { at::mm_out(blas_result, onednn.left(), onednn.right()); }},
                           {.name = "oneDNN", .run = [&] { onednn.run(); }}},
                          {.repeats = repetitions});
  const double gigaflops = onednn.flops() * 1e-9;
  // Sums of `size` products of numbers below 1 in another order: the error grows with the square root of their number.
  const bool agree = at::allclose(blas_result, onednn.result(), /*rtol=*/1e-4, /*atol=*/1e-3);
  return {.size = size,
          .blas_gflops = gigaflops / timings[0].median,
          .onednn_gflops = gigaflops / timings[1].median,
          .results_agree = agree};
}

}  // namespace routing
