#include "routing/ops/commitment.h"

#include "routing/core/error.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>

namespace routing::commitment_test {
namespace {

using support::random_tensor;

struct Inputs {
  at::Tensor vectors, choice, centroids;
};

// Two sequences of three heads; every seventh token is padding.
Inputs inputs_of(std::int64_t tokens, std::int64_t dim, at::ScalarType type) {
  constexpr std::int64_t kClusters = 5;
  Inputs inputs{random_tensor({2, 3, tokens, dim}, 1).to(type), at::empty({2, 3, tokens}, at::kInt),
                random_tensor({3, kClusters, dim}, 2).to(at::kFloat)};
  auto choice = inputs.choice.accessor<std::int32_t, 3>();
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 3; ++h) {
      for (std::int64_t t = 0; t < tokens; ++t) {
        choice[b][h][t] = t % 7 == 6 ? -1 : static_cast<std::int32_t>((t * 3 + h + b) % kClusters);
      }
    }
  }
  return inputs;
}

TEST(Commitment, HandWorkedCase) {
  // Tokens (1, 2) to (0, 0): 5; (3, 0) to (1, 1): 5; padding. Two tokens of two dimensions.
  const at::Tensor vectors =
      at::tensor({1.0F, 2.0F, 3.0F, 0.0F, 9.0F, 9.0F}).view({1, 1, 3, 2}).set_requires_grad(true);
  const at::Tensor choice = at::tensor({0, 1, -1}, at::kInt).view({1, 1, 3});
  const at::Tensor centroids = at::tensor({0.0F, 0.0F, 1.0F, 1.0F}).view({1, 2, 2});
  const at::Tensor loss = commitment_loss(vectors, choice, centroids);
  EXPECT_EQ(loss.item<float>(), 2.5F);
  (loss * 2.0).backward();
  EXPECT_TRUE(vectors.grad().equal(at::tensor({1.0F, 2.0F, 2.0F, -1.0F, 0.0F, 0.0F}).view({1, 1, 3, 2})));
}

TEST(Commitment, FloatEqualsDoubleForEveryTail) {
  for (const std::int64_t tokens : {1, 6, 7, 8, 300}) {
    for (const std::int64_t dim : {1, 3, 15, 16, 17, 64, 70}) {
      const Inputs precise = inputs_of(tokens, dim, at::kDouble);
      const Inputs fast = inputs_of(tokens, dim, at::kFloat);
      precise.vectors.set_requires_grad(true);
      fast.vectors.set_requires_grad(true);
      const at::Tensor expected = commitment_loss(precise.vectors, precise.choice, precise.centroids);
      const at::Tensor loss = commitment_loss(fast.vectors, fast.choice, fast.centroids);
      EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-6 * expected.item<double>());
      expected.backward();
      loss.backward();
      EXPECT_TRUE(at::allclose(fast.vectors.grad().to(at::kDouble), precise.vectors.grad(), 1e-5, 1e-7));
    }
  }
}

TEST(Commitment, BitsDoNotDependOnTheThreads) {
  const support::ThreadGuard guard;
  const Inputs inputs = inputs_of(1500, 33, at::kFloat);
  std::vector<at::Tensor> losses;
  std::vector<at::Tensor> gradients;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const at::Tensor vectors = inputs.vectors.clone().set_requires_grad(true);
    losses.push_back(commitment_loss(vectors, inputs.choice, inputs.centroids));
    losses.back().backward();
    gradients.push_back(vectors.grad());
    EXPECT_TRUE(losses.back().equal(losses.front()));
    EXPECT_TRUE(gradients.back().equal(gradients.front()));
  }
}

TEST(Commitment, CentroidsMayMoveBeforeTheGradientIsAskedFor) {
  Inputs inputs = inputs_of(9, 4, at::kFloat);
  const at::Tensor first = inputs.vectors.clone().set_requires_grad(true);
  commitment_loss(first, inputs.choice, inputs.centroids).backward();
  const at::Tensor second = inputs.vectors.clone().set_requires_grad(true);
  const at::Tensor loss = commitment_loss(second, inputs.choice, inputs.centroids);
  inputs.centroids.add_(1.0);
  loss.backward();
  EXPECT_TRUE(first.grad().equal(second.grad()));
  EXPECT_FALSE(inputs.centroids.requires_grad());
}

TEST(Commitment, IsZeroWithoutTokens) {
  const Inputs inputs = inputs_of(4, 3, at::kFloat);
  EXPECT_EQ(commitment_loss(inputs.vectors, at::full_like(inputs.choice, -1), inputs.centroids).item<float>(), 0.0F);
  const Inputs none = inputs_of(0, 3, at::kFloat);
  EXPECT_EQ(commitment_loss(none.vectors, none.choice, none.centroids).item<float>(), 0.0F);
}

TEST(Commitment, ShapesThatDoNotFitAreRefused) {
  const Inputs inputs = inputs_of(4, 3, at::kFloat);
  EXPECT_THROW(commitment_loss(inputs.vectors, inputs.choice.narrow(2, 0, 3), inputs.centroids), InputError);
  EXPECT_THROW(commitment_loss(inputs.vectors, inputs.choice, inputs.centroids.narrow(2, 0, 2)), InputError);
  EXPECT_THROW(commitment_loss(inputs.vectors, inputs.choice.to(at::kLong), inputs.centroids), InputError);
}

}  // namespace
}  // namespace routing::commitment_test
