#include "routing/ops/tensor_memory.h"

#include "routing/core/block_pool.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <cstddef>
#include <malloc.h>

namespace routing {
namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20U;
constexpr std::uint8_t kPriority = 100;  // above libtorch's own, which has 0

void free_memory(void* memory) {
  if (memory != nullptr && !block_pool().give_back(memory)) c10::free_cpu(memory);
}

class PooledAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) const override {
    void* memory = bytes >= kLarge ? block_pool().take(bytes) : c10::alloc_cpu(bytes);
    return {memory, memory, &free_memory, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
};

}  // namespace

void reuse_tensor_memory() {
  static auto* allocator = new PooledAllocator;  // tensors may outlive everything
  c10::SetCPUAllocator(allocator, kPriority);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace routing
