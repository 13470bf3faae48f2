#include "lab/measure/gemm_rate.h"

#include "lab/measure/flops.h"
#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/onednn_limit.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace routing::bench {
namespace {

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

dnnl::matmul make_matmul(const Memory::desc& left, const Memory::desc& right, const Memory::desc& result,
                         const dnnl::engine& engine) {
#if DNNL_VERSION_MAJOR >= 3
  return {dnnl::matmul::primitive_desc(engine, left, right, result)};
#else
  return {dnnl::matmul::primitive_desc(dnnl::matmul::desc(left, right, result), engine)};
#endif
}

dnnl::engine make_engine() {
  limit_onednn();
  return {dnnl::engine::kind::cpu, 0};
}

}  // namespace

struct GemmProduct::Parts {
  GemmSizes sizes;
  dnnl::engine engine = make_engine();
  dnnl::stream stream{engine};
  dnnl::matmul matmul;
  at::Tensor left, right, result;
  std::unordered_map<int, Memory> arguments;
};

GemmProduct::GemmProduct(const GemmSizes& sizes, MatmulPrecision factors) : parts_(std::make_unique<Parts>()) {
  const bool bf16 = factors == MatmulPrecision::bf16;
  if (bf16 && onednn_would_crash_on_tiles()) {
    throw dnnl::error(dnnl_unimplemented, "oneDNN cannot use the tiles of this virtual machine");
  }
  const Memory::data_type type = bf16 ? Memory::data_type::bf16 : Memory::data_type::f32;
  const Memory::desc left = plain(sizes.rows, sizes.depth, type);
  const Memory::desc right = plain(sizes.depth, sizes.columns, type);
  const Memory::desc result = plain(sizes.rows, sizes.columns, Memory::data_type::f32);
  Parts& p = *parts_;
  p.sizes = sizes;
  p.matmul = make_matmul(left, right, result, p.engine);
  // Values of ordinary size: rows of zeros or of denormal numbers may take another time.
  const at::ScalarType torch_type = bf16 ? at::kBFloat16 : at::kFloat;
  p.left = at::linspace(-1.0, 1.0, sizes.rows * sizes.depth).sin_().to(torch_type).view({sizes.rows, sizes.depth});
  p.right =
      at::linspace(-2.0, 1.0, sizes.depth * sizes.columns).cos_().to(torch_type).view({sizes.depth, sizes.columns});
  p.result = at::empty({sizes.rows, sizes.columns});
  p.arguments = {{DNNL_ARG_SRC, Memory(left, p.engine, p.left.data_ptr())},
                 {DNNL_ARG_WEIGHTS, Memory(right, p.engine, p.right.data_ptr())},
                 {DNNL_ARG_DST, Memory(result, p.engine, p.result.data_ptr())}};
}

GemmProduct::~GemmProduct() = default;

void GemmProduct::run() {
  parts_->matmul.execute(parts_->stream, parts_->arguments);
  parts_->stream.wait();
}

double GemmProduct::flops() const {
  return product_flops(parts_->sizes.rows, parts_->sizes.depth, parts_->sizes.columns);
}

const at::Tensor& GemmProduct::left() const {
  return parts_->left;
}

const at::Tensor& GemmProduct::right() const {
  return parts_->right;
}

const at::Tensor& GemmProduct::result() const {
  return parts_->result;
}

GemmProbe::GemmProbe() {
  const AllThreads threads;
  try {
    product_ = std::make_unique<GemmProduct>(GemmSizes{}, type_);
  } catch (const dnnl::error&) {
    type_ = MatmulPrecision::fp32;
    product_ = std::make_unique<GemmProduct>(GemmSizes{}, type_);
  }
}

void GemmProbe::run() {
  const AllThreads threads;
  product_->run();
}

}  // namespace routing::bench
