// The yardstick: how fast this machine multiplies matrices right now.
#pragma once

#include <memory>
#include <string>

namespace routing::bench {

// [4096, 512] x [512, 2048] by oneDNN on all threads of the process: bfloat16 factors in plain row-major order (nothing
// packed beforehand), float32 result. Where the processor cannot do that, float32 factors.
class GemmProbe {
 public:
  GemmProbe();
  ~GemmProbe();
  GemmProbe(const GemmProbe&) = delete;
  GemmProbe& operator=(const GemmProbe&) = delete;

  // One product.
  void run();
  static double flops();
  // "bf16" or "fp32": of the factors.
  const std::string& type() const;

 private:
  struct Product;
  std::unique_ptr<Product> product_;
};

}  // namespace routing::bench
