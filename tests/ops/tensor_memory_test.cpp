#include "routing/ops/tensor_memory.h"

#include "routing/core/block_pool.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace routing::tensor_memory_test {
namespace {

// For the whole process, so one test holds the order: before and after.
TEST(TensorMemory, LargeTensorsComeFromThePoolAndSmallOnesDoNot) {
  const at::Tensor early = at::ones({1024, 1024});
  EXPECT_EQ(block_pool().usage().in_use, 0U);
  reuse_tensor_memory();
  at::Tensor large = at::ones({1024, 1024});
  EXPECT_EQ(block_pool().usage().in_use, std::size_t{4} << 20U);
  const at::Tensor small = at::ones({16});
  EXPECT_EQ(block_pool().usage().in_use, std::size_t{4} << 20U);
  const void* memory = large.data_ptr();
  large.reset();
  EXPECT_EQ(block_pool().usage().in_use, 0U);
  const at::Tensor next = at::full({1024, 1000}, 2.0);
  EXPECT_EQ(next.data_ptr(), memory);
  EXPECT_EQ(next.sum().item<double>(), 2.0 * 1024 * 1000);
  EXPECT_EQ(early.sum().item<double>(), 1024.0 * 1024.0);
  // A tensor that grows asks for its memory another way.
  at::Tensor grown = at::empty({0}, at::kFloat);
  grown.resize_({3, 1024, 1024}).fill_(1.0);
  EXPECT_EQ(grown.sum().item<double>(), 3.0 * 1024 * 1024);
}

}  // namespace
}  // namespace routing::tensor_memory_test
