// How fast this machine multiplies matrices right now, by oneDNN.
#pragma once

#include "routing/ops/precision.h"

#include <cstdint>
#include <memory>

namespace at {
class Tensor;
}

namespace routing::bench {

struct GemmSizes {
  std::int64_t rows = 4096;
  std::int64_t depth = 512;
  std::int64_t columns = 2048;
};

// [rows, depth] x [depth, columns] on OpenMP's threads: factors in plain row-major order (nothing packed beforehand),
// float32 result. A dnnl::error where the processor cannot multiply such factors.
class GemmProduct {
 public:
  GemmProduct(const GemmSizes& sizes, MatmulPrecision factors);
  ~GemmProduct();
  GemmProduct(const GemmProduct&) = delete;
  GemmProduct& operator=(const GemmProduct&) = delete;

  void run();
  double flops() const;
  const at::Tensor& left() const;
  const at::Tensor& right() const;
  const at::Tensor& result() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// The yardstick of benchmarks: a product of the usual sizes on all threads of the process, of bfloat16 factors, or
// float32 where the processor cannot do that.
class GemmProbe {
 public:
  GemmProbe();

  void run();
  double flops() const { return product_->flops(); }
  MatmulPrecision type() const { return type_; }  // of the factors

 private:
  MatmulPrecision type_ = MatmulPrecision::bf16;
  std::unique_ptr<GemmProduct> product_;
};

}  // namespace routing::bench
