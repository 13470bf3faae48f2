#include "routing/ops/embedding.h"

#include "routing/core/error.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>

namespace routing::embedding_test {
namespace {

using support::random_tensor;

TEST(Embedding, LooksUpRows) {
  const at::Tensor table = at::arange(8, at::kFloat).view({4, 2});
  const at::Tensor ids = at::tensor({3, 0, 3, 1}, at::kLong).view({2, 2});
  EXPECT_TRUE(
      routing::embedding(ids, table).equal(at::tensor({6, 7, 0, 1, 6, 7, 2, 3}).to(at::kFloat).view({2, 2, 2})));
  EXPECT_EQ(routing::embedding(at::empty({3, 0}, at::kLong), table).sizes(), at::IntArrayRef({3, 0, 2}));
}

TEST(Embedding, GradientEqualsFiniteDifferencesInDouble) {
  const at::Tensor ids = at::tensor({3, 0, 3, 1, 3}, at::kLong);
  const auto function = [&](const std::vector<at::Tensor>& x) { return routing::embedding(ids, x[0]).view({-1}); };
  EXPECT_LT(support::jacobian_error(function, {random_tensor({5, 3}, 1)}), 1e-8);
}

// In float32 the order shows: 1 + 2^-24 + 2^-24 is 1 from the left, but 1 + 2^-23 from the right.
TEST(Embedding, GradientIsSummedInTheOrderOfPositions) {
  const at::Tensor table = at::zeros({2, 1}).requires_grad_();
  const at::Tensor ids = at::tensor({1, 1, 1}, at::kLong);
  const float tiny = 0x1.0p-24F;
  const auto gradient_of = [&](const at::Tensor& dy) {
    return torch::autograd::grad({routing::embedding(ids, table)}, {table}, {dy.view({3, 1})})[0][1][0].item<float>();
  };
  EXPECT_EQ(gradient_of(at::tensor({1.0F, tiny, tiny})), 1.0F);
  EXPECT_EQ(gradient_of(at::tensor({tiny, tiny, 1.0F})), 1.0F + 0x1.0p-23F);
}

TEST(Embedding, GradientBitsDoNotDependOnThreads) {
  const support::ThreadGuard guard;
  const at::Tensor ids = (random_tensor({3000}, 1).abs() * 100.0).to(at::kLong).remainder(57);
  const at::Tensor table = at::zeros({57, 19}).requires_grad_();
  const at::Tensor dy = random_tensor({3000, 19}, 2).to(at::kFloat);
  set_num_threads(1);
  const auto gradient = [&] { return torch::autograd::grad({routing::embedding(ids, table)}, {table}, {dy})[0]; };
  const at::Tensor expected = gradient();
  EXPECT_TRUE(at::allclose(expected, at::zeros({57, 19}).index_add_(0, ids, dy), 1e-4, 1e-4));
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    EXPECT_TRUE(gradient().equal(expected)) << threads;
  }
}

TEST(Embedding, IdOutsideOfTheTableIsNamedWithItsSize) {
  for (const std::int64_t id : {-1, 4, 1000}) {
    try {
      routing::embedding(at::tensor({0, static_cast<int>(id)}, at::kLong), at::zeros({4, 2}));
      FAIL() << id << " was taken";
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("id " + std::to_string(id) + " at position 1"), std::string::npos) << message;
      EXPECT_NE(message.find("4 rows"), std::string::npos) << message;
    }
  }
  EXPECT_THROW(routing::embedding(at::zeros({2}), at::zeros({4, 2})), InputError);
  EXPECT_THROW(routing::embedding(at::zeros({2}, at::kLong), at::zeros({4})), InputError);
}

TEST(Embedding, MetaTensorsGetShapes) {
  const auto meta = at::TensorOptions(at::kMeta);
  EXPECT_EQ(
      routing::embedding(at::empty({2, 3}, meta.dtype(at::kLong)), at::empty({9, 4}, meta.dtype(at::kFloat))).sizes(),
      at::IntArrayRef({2, 3, 4}));
}

}  // namespace
}  // namespace routing::embedding_test
