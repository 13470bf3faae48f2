#include "routing/ops/tensor_memory.h"

#include "routing/core/block_pool.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/version.h>

#include <cstddef>
#include <malloc.h>

namespace routing {
namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20U;
constexpr std::uint8_t kPriority = 100;  // above libtorch's own, which has 0

void free_memory(void* memory) {
  if (memory != nullptr && !block_pool().give_back(memory)) c10::free_cpu(memory);
}

c10::DataPtr take(std::size_t bytes) {
  void* memory = bytes >= kLarge ? block_pool().take(bytes) : c10::alloc_cpu(bytes);
  return {memory, memory, &free_memory, c10::Device(c10::DeviceType::CPU)};
}

class PooledAllocator final : public c10::Allocator {
 public:
  // The interface is not the same in libtorch 1 and 2.
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t bytes) override {
    return take(bytes);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
    return take(bytes);
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_memory;
  }
};

}  // namespace

void reuse_tensor_memory() {
  static auto* allocator = new PooledAllocator;  // tensors may outlive everything
  c10::SetCPUAllocator(allocator, kPriority);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace routing
