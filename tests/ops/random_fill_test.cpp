#include "routing/ops/random_fill.h"

#include <gtest/gtest.h>

namespace routing::random_fill_test {
namespace {

TEST(RandomFill, GivesTheValuesOfTheStreamInRowMajorOrder) {
  at::Tensor tensor = at::empty({2, 3}, at::kDouble);
  fill_uniform(tensor, -1.0, 3.0, RandomStream(5, "here"));
  RandomStream stream(5, "here");
  for (std::int64_t index = 0; index < 6; ++index) {
    EXPECT_DOUBLE_EQ(tensor.view({-1})[index].item<double>(), -1.0 + 4.0 * stream.uniform());
  }
  fill_normal(tensor, 2.0, 0.5, RandomStream(6, "there"));
  EXPECT_DOUBLE_EQ(tensor[0][0].item<double>(), 2.0 + 0.5 * RandomStream(6, "there").normal());
}

TEST(RandomFill, WritesThroughViewsAndLeavesMetaTensorsAlone) {
  at::Tensor tensor = at::zeros({2, 2});
  fill_uniform(tensor.t(), 1.0, 2.0, RandomStream(1, "view"));
  EXPECT_GE(tensor.min().item<double>(), 1.0);
  at::Tensor meta = at::empty({4}, at::TensorOptions(at::kMeta));
  fill_uniform(meta, 0.0, 1.0, RandomStream(1, "meta"));
  EXPECT_TRUE(meta.is_meta());
}

TEST(RandomFill, WorksOnLeavesThatRequireGradients) {
  at::Tensor leaf = at::zeros({3}).set_requires_grad(true);
  fill_uniform(leaf, 1.0, 2.0, RandomStream(1, "leaf"));
  EXPECT_GE(leaf.min().item<double>(), 1.0);
  EXPECT_TRUE(leaf.is_leaf());
}

}  // namespace
}  // namespace routing::random_fill_test
