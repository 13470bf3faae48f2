#include "lab/measure/gemm_rate.h"

#include "lab/measure/flops.h"
#include "routing/core/parallel.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace routing::bench {
namespace {

constexpr std::int64_t kRows = 4096;
constexpr std::int64_t kDepth = 512;
constexpr std::int64_t kColumns = 2048;

using Memory = dnnl::memory;

// oneDNN runs on OpenMP's threads, of which the program otherwise uses one.
class AllThreads {
 public:
  AllThreads() { omp_set_num_threads(num_threads()); }
  ~AllThreads() { omp_set_num_threads(before_); }
  AllThreads(const AllThreads&) = delete;
  AllThreads& operator=(const AllThreads&) = delete;

 private:
  int before_ = omp_get_max_threads();
};

Memory::desc plain(std::int64_t rows, std::int64_t columns, Memory::data_type type) {
  return {{rows, columns}, type, Memory::format_tag::ab};
}

dnnl::matmul make_matmul(Memory::data_type factors, const dnnl::engine& engine) {
  const Memory::desc left = plain(kRows, kDepth, factors);
  const Memory::desc right = plain(kDepth, kColumns, factors);
  const Memory::desc result = plain(kRows, kColumns, Memory::data_type::f32);
#if DNNL_VERSION_MAJOR >= 3
  return {dnnl::matmul::primitive_desc(engine, left, right, result)};
#else
  return {dnnl::matmul::primitive_desc(dnnl::matmul::desc(left, right, result), engine)};
#endif
}

}  // namespace

struct GemmProbe::Product {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul matmul;
  std::string type;
  at::Tensor left, right, result;
  std::unordered_map<int, Memory> arguments;
};

GemmProbe::GemmProbe() : product_(std::make_unique<Product>()) {
  const AllThreads threads;
  Product& p = *product_;
  at::ScalarType torch_type = at::kBFloat16;
  Memory::data_type type = Memory::data_type::bf16;
  try {
    p.matmul = make_matmul(type, p.engine);
    p.type = "bf16";
  } catch (const dnnl::error&) {
    torch_type = at::kFloat;
    type = Memory::data_type::f32;
    p.matmul = make_matmul(type, p.engine);
    p.type = "fp32";
  }
  // Values of ordinary size: rows of zeros or of denormal numbers may take another time.
  p.left = at::linspace(-1.0, 1.0, kRows * kDepth).sin_().to(torch_type);
  p.right = at::linspace(-2.0, 1.0, kDepth * kColumns).cos_().to(torch_type);
  p.result = at::empty({kRows, kColumns});
  p.arguments = {{DNNL_ARG_SRC, Memory(plain(kRows, kDepth, type), p.engine, p.left.data_ptr())},
                 {DNNL_ARG_WEIGHTS, Memory(plain(kDepth, kColumns, type), p.engine, p.right.data_ptr())},
                 {DNNL_ARG_DST, Memory(plain(kRows, kColumns, Memory::data_type::f32), p.engine, p.result.data_ptr())}};
}

GemmProbe::~GemmProbe() = default;

void GemmProbe::run() {
  const AllThreads threads;
  product_->matmul.execute(product_->stream, product_->arguments);
  product_->stream.wait();
}

double GemmProbe::flops() {
  return product_flops(kRows, kDepth, kColumns);
}

const std::string& GemmProbe::type() const {
  return product_->type;
}

}  // namespace routing::bench
