// What dense.cpp and dense_gradient.cpp share: oneDNN matmuls made for one thread, and scratch memory.
#pragma once

#include "routing/kernels/dense/dense.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace routing::kernels {

// While it lives, oneDNN calls of this thread see a single thread. Outside a parallel region they would start a team of
// their own, and matmuls are cut differently for different teams.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_before_;
};

// Memory that grows as needed and is kept for the next use; 64-byte aligned, contents undefined.
class Scratch {
 public:
  template <class Value>
  Value* get(std::int64_t count) {
    return static_cast<Value*>(at_least(static_cast<std::size_t>(count) * sizeof(Value)));
  }

 private:
  struct Free {
    void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  void* at_least(std::size_t bytes);
  std::unique_ptr<void, Free> memory_;
  std::size_t size_ = 0;
};

// Everything that decides which matmul runs.
struct MatmulKey {
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  DenseType type = DenseType::fp32;
  // Elements from one row (of a transposed left factor: one column) to the next.
  std::int64_t left_stride = 0;
  std::int64_t right_stride = 0;  // 0: the right factor is packed
  std::int64_t output_stride = 0;
  bool left_transposed = false;
  bool bias = false;
  bool relu = false;
  bool accumulate = false;

  bool operator==(const MatmulKey&) const = default;
};

struct MatmulKeyHash {
  std::size_t operator()(const MatmulKey& key) const;
};

struct Matmul {
  MatmulKey key;
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

// Made once for each key and kept; any thread may ask.
std::shared_ptr<const Matmul> matmul_for(const MatmulKey& key);

// One matmul with its arguments, to be run again and again by one thread.
class MatmulRun {
 public:
  explicit MatmulRun(std::shared_ptr<const Matmul> matmul, Scratch& scratchpad);
  void set_bias(const float* bias);
  void operator()(const void* left, const dnnl::memory& right, float* outputs);
  void operator()(const void* left, const void* right, float* outputs);

 private:
  std::shared_ptr<const Matmul> matmul_;
  dnnl::stream stream_;
  dnnl::memory left_, right_, outputs_;
  // In the scratchpad, where oneDNN cannot be given the vectors of the caller; else null.
  char* dense_left_ = nullptr;
  float* dense_outputs_ = nullptr;
  std::unordered_map<int, dnnl::memory> arguments_;
};

const dnnl::engine& cpu_engine();

// Whether matmuls take bfloat16 themselves, here and now (DNNL_MAX_CPU_ISA may forbid it). If not, factors are rounded
// and multiplied as float32.
bool multiplies_bfloat16();

// Left factors as matmuls of the type take them: rows of bfloat16 or of float32. Returns the rows themselves if they
// can be used as they are; else a copy in scratch, filled up with zero rows.
struct LeftRows {
  DenseRows rows;
  std::int64_t num_rows = 0;
  std::int64_t width = 0;
  std::int64_t filled_rows = 0;  // num_rows or more
};
const void* convert_rows(const LeftRows& source, DenseType type, Scratch& scratch);

// Bytes of one element as matmuls of the type take it.
std::int64_t element_bytes(DenseType type);

}  // namespace routing::kernels
