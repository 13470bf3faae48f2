#include "routing/ops/dense/packed_weights.h"

#include "routing/ops/dense/linear.h"
#include "support/pattern_cases.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>
#include <vector>

namespace routing::packed_weights_test {
namespace {

using kernels::DenseType;
using support::random_tensor;

class PackedWeights : public ::testing::Test {
 protected:
  void SetUp() override { empty(); }
  void TearDown() override { empty(); }

  static void empty() {
    set_packed_weights_limit(0);
    set_packed_weights_limit(std::size_t{1} << 30U);
  }
  // Same values, packed afresh: what a stale pack would differ from.
  static at::Tensor fresh_product(const at::Tensor& input, const at::Tensor& weight) {
    return routing::linear(input, weight.detach().clone());
  }
  at::Tensor input_ = random_tensor({3, 8}, 1).to(at::kFloat);
};

TEST_F(PackedWeights, UnchangedWeightIsPackedOnceForEachUse) {
  const at::Tensor weight = at::ones({4, 8});
  const auto* first = &packed_weight(weight, WeightUse::forward, DenseType::fp32).contents();
  EXPECT_EQ(&packed_weight(weight, WeightUse::forward, DenseType::fp32).contents(), first);
  EXPECT_NE(&packed_weight(weight, WeightUse::data_gradient, DenseType::fp32).contents(), first);
  EXPECT_NE(&packed_weight(weight, WeightUse::forward, DenseType::bf16).contents(), first);
  EXPECT_EQ(packed_weights_state().entries, 3U);
  EXPECT_EQ(&packed_weight(weight, WeightUse::forward, DenseType::fp32).contents(), first);
}

TEST_F(PackedWeights, InPlaceChangesAreSeen) {
  at::Tensor weight = random_tensor({4, 8}, 2).to(at::kFloat);
  at::Tensor parameter = weight.detach().clone().requires_grad_();
  for (int step = 0; step < 3; ++step) {
    EXPECT_TRUE(routing::linear(input_, weight).equal(fresh_product(input_, weight)));
    EXPECT_TRUE(routing::linear(input_, parameter).equal(fresh_product(input_, parameter)));
    weight.mul_(1.5);
    weight.view({-1})[3] = 7.0;  // through a view
    const at::NoGradGuard no_gradient;
    parameter.add_(0.25);
    parameter.detach().add_(0.25);  // shares the version
  }
  EXPECT_EQ(packed_weights_state().entries, 1U + 1U) << "old versions must make room for new ones";
}

TEST_F(PackedWeights, OfAForgottenWeightNothingIsKeptAndOfOthersAll) {
  const at::Tensor weight = random_tensor({4, 8}, 4).to(at::kFloat);
  const at::Tensor other = random_tensor({4, 8}, 5).to(at::kFloat);
  const auto* kept = &packed_weight(other, WeightUse::forward, DenseType::fp32).contents();
  const at::Tensor before = routing::linear(input_, weight);
  packed_weight(weight, WeightUse::data_gradient, DenseType::bf16);
  weight.data_ptr<float>()[3] += 2.0F;
  EXPECT_TRUE(routing::linear(input_, weight).equal(before)) << "nobody knows of the write";
  forget_packed_weight(weight);
  EXPECT_EQ(packed_weights_state().entries, 1U);
  EXPECT_TRUE(routing::linear(input_, weight).equal(fresh_product(input_, weight)));
  EXPECT_FALSE(routing::linear(input_, weight).equal(before));
  EXPECT_EQ(&packed_weight(other, WeightUse::forward, DenseType::fp32).contents(), kept);
}

TEST_F(PackedWeights, RaisedVersionMakesWritesThroughPointersSeen) {
  const at::Tensor weight = at::ones({1, 8});
  EXPECT_EQ(routing::linear(at::ones({1, 8}), weight).item<float>(), 8.0F);
  weight.data_ptr<float>()[0] = 2.0F;
  weight.unsafeGetTensorImpl()->bump_version();
  EXPECT_EQ(routing::linear(at::ones({1, 8}), weight).item<float>(), 9.0F);
}

TEST_F(PackedWeights, FreedAndReusedAddressesAreNotMistaken) {
  std::vector<float> memory(8);
  for (int round = 0; round < 50; ++round) {
    // A new tensor of version 0 on the very same memory each time, as an allocator may hand it out again.
    memory.assign(8, static_cast<float>(round));
    const at::Tensor weight = at::from_blob(memory.data(), {1, 8});
    ASSERT_EQ(routing::linear(at::ones({1, 8}), weight).item<float>(), 8.0F * static_cast<float>(round));
    ASSERT_EQ(packed_weights_state().entries, 1U) << "packs of freed weights must not pile up";
  }
  EXPECT_EQ(packed_weights_state().entries, 0U);
}

TEST_F(PackedWeights, NewStorageUnderTheSameTensorIsSeen) {
  at::Tensor weight = at::ones({1, 8});
  EXPECT_EQ(routing::linear(at::ones({1, 8}), weight).item<float>(), 8.0F);
  weight.set_data(at::full({1, 8}, 3.0));
  EXPECT_EQ(routing::linear(at::ones({1, 8}), weight).item<float>(), 24.0F);
}

TEST_F(PackedWeights, LimitDropsTheLeastRecentlyUsed) {
  std::vector<at::Tensor> weights;
  for (int i = 0; i < 3; ++i) weights.push_back(at::full({64, 64}, static_cast<double>(i)));
  const auto contents = [&](std::size_t i) {
    return &packed_weight(weights[i], WeightUse::forward, DenseType::fp32).contents();
  };
  const std::size_t one = packed_weight(weights[0], WeightUse::forward, DenseType::fp32).bytes();
  EXPECT_GE(one, std::size_t{64 * 64 * 4});
  set_packed_weights_limit(2 * one);
  EXPECT_EQ(packed_weights_limit(), 2 * one);
  const auto* first = contents(0);
  contents(1);
  EXPECT_EQ(contents(0), first);
  contents(2);  // weight 1 has waited longest
  EXPECT_EQ(packed_weights_state().entries, 2U);
  EXPECT_EQ(packed_weights_state().bytes, 2 * one);
  EXPECT_EQ(contents(0), first);
  set_packed_weights_limit(one / 2);
  EXPECT_EQ(packed_weights_state().entries, 0U);
  EXPECT_TRUE(routing::linear(input_, at::ones({4, 8})).equal(fresh_product(input_, at::ones({4, 8}))));
}

TEST_F(PackedWeights, InferenceTensorsAreNotKept) {
  const c10::InferenceMode inference;
  at::Tensor weight = at::ones({1, 8});
  EXPECT_EQ(routing::linear(at::ones({1, 8}), weight).item<float>(), 8.0F);
  weight.fill_(2.0);
  EXPECT_EQ(routing::linear(at::ones({1, 8}), weight).item<float>(), 16.0F);
  EXPECT_EQ(packed_weights_state().entries, 0U);
}

TEST_F(PackedWeights, BackwardUsesTheValuesOfItsForward) {
  const at::Tensor x = at::ones({1, 8}).requires_grad_();
  const at::Tensor weight = random_tensor({4, 8}, 3).to(at::kFloat).requires_grad_();
  for (int step = 0; step < 3; ++step) {
    const auto d = torch::autograd::grad({routing::linear(x, weight).sum()}, {x, weight});
    EXPECT_TRUE(at::allclose(d[0], weight.detach().sum(0, true)));
    const at::NoGradGuard no_gradient;
    weight.detach().add_(d[1]);
  }
}

TEST_F(PackedWeights, ThreadsMayAskAtOnce) {
  std::vector<at::Tensor> weights;
  for (int i = 0; i < 4; ++i) weights.push_back(at::full({1, 8}, 1.0 + i));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 200; ++i) {
        const std::size_t w = (i + t) % 4;
        const float product = routing::linear(at::ones({1, 8}), weights[w]).item<float>();
        if (product != 8.0F * (1.0F + static_cast<float>(w))) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace routing::packed_weights_test
