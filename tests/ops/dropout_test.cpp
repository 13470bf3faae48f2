#include "routing/ops/dropout.h"

#include "routing/core/error.h"
#include "routing/core/random.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

namespace routing::dropout_test {
namespace {

using support::random_tensor;

// One element at a time, from the definition in kernels/pointwise/dropout.h.
at::Tensor plain_loops(const at::Tensor& input, const DropoutDraw& draw) {
  at::Tensor output = at::zeros_like(input);
  for (std::int64_t b = 0; b < input.size(0); ++b) {
    const std::int64_t id = draw.sample_ids.defined() ? draw.sample_ids[b].item<std::int64_t>() : b;
    const std::uint64_t key = stream_key(draw.key, "dropout", {static_cast<std::uint64_t>(id)});
    for (std::int64_t t = 0; t < input.size(1); ++t) {
      for (std::int64_t c = 0; c < input.size(2); ++c) {
        const auto words = philox(key, {static_cast<std::uint32_t>(c / 4), static_cast<std::uint32_t>(t), 0, 0});
        if (static_cast<double>(words.at(static_cast<std::size_t>(c % 4))) < std::floor(draw.probability * 0x1.0p32))
          continue;
        output[b][t][c] = input[b][t][c] * (1.0 / (1.0 - draw.probability));
      }
    }
  }
  return output;
}

TEST(Dropout, EqualsPlainLoopsOverPhilox) {
  for (const std::int64_t width : {1, 3, 17, 64, 70}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor x = random_tensor({2, 3, width}, 1).to(type);
      const DropoutDraw draw{.probability = 0.5, .key = 77, .sample_ids = at::tensor({9, 4}, at::kLong)};
      EXPECT_TRUE(dropout(x, draw).equal(plain_loops(x, draw))) << width;
    }
  }
}

TEST(Dropout, DropsTheGivenShareAndKeepsTheMean) {
  const at::Tensor ones = at::ones({4, 500, 128});
  for (const double probability : {0.1, 0.5, 0.9}) {
    const at::Tensor dropped = dropout(ones, {.probability = probability, .key = 5});
    const double count = static_cast<double>(ones.numel());
    const double share = (dropped == 0.0).to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(share, probability, 5.0 * std::sqrt(probability * (1.0 - probability) / count));
    EXPECT_NEAR(dropped.max().item<double>(), 1.0 / (1.0 - probability), 1e-5);
  }
}

TEST(Dropout, ChoiceFollowsTheSampleNotItsPlace) {
  const support::ThreadGuard guard;
  const at::Tensor x = random_tensor({3, 40, 70}, 1).to(at::kFloat);
  const at::Tensor ids = at::tensor({11, 12, 13}, at::kLong);
  set_num_threads(1);
  const at::Tensor whole = dropout(x, {.probability = 0.3, .key = 5, .sample_ids = ids});
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    EXPECT_TRUE(dropout(x, {.probability = 0.3, .key = 5, .sample_ids = ids}).equal(whole));
    EXPECT_TRUE(dropout(x.flip(0), {.probability = 0.3, .key = 5, .sample_ids = ids.flip(0)}).flip(0).equal(whole));
    EXPECT_TRUE(
        dropout(x.narrow(1, 0, 7), {.probability = 0.3, .key = 5, .sample_ids = ids}).equal(whole.narrow(1, 0, 7)));
  }
  EXPECT_FALSE(dropout(x, {.probability = 0.3, .key = 6, .sample_ids = ids}).equal(whole));
  EXPECT_FALSE(dropout(x, {.probability = 0.3, .key = 5}).equal(whole));
  EXPECT_TRUE(dropout(x, {.probability = 0.3, .key = 5})
                  .equal(dropout(x, {.probability = 0.3, .key = 5, .sample_ids = at::arange(3, at::kLong)})));
}

TEST(Dropout, GradientEqualsFiniteDifferencesInDouble) {
  const auto function = [](const std::vector<at::Tensor>& x) {
    return dropout(x[0], {.probability = 0.4, .key = 3}).reshape({-1});
  };
  EXPECT_LT(support::jacobian_error(function, {random_tensor({2, 2, 5}, 1)}), 1e-8);
}

TEST(Dropout, DroppedElementsAreZeroWhateverTheyWere) {
  const at::Tensor x = at::full({1, 8, 64}, std::numeric_limits<double>::quiet_NaN());
  const at::Tensor dropped = dropout(x, {.probability = 0.5, .key = 3});
  EXPECT_TRUE((dropped == 0.0).any().item<bool>());
}

TEST(Dropout, ProbabilityZeroReturnsTheInput) {
  const at::Tensor x = random_tensor({2, 2, 5}, 1);
  EXPECT_TRUE(dropout(x, {}).is_same(x));
}

TEST(Dropout, TakesNoRowsMetaTensorsAndAnyStrides) {
  const DropoutDraw draw{.probability = 0.5, .key = 3};
  EXPECT_EQ(dropout(at::empty({0, 4, 3}), draw).sizes(), at::IntArrayRef({0, 4, 3}));
  EXPECT_EQ(dropout(at::empty({2, 4, 3}, at::kMeta), draw).sizes(), at::IntArrayRef({2, 4, 3}));
  const at::Tensor x = random_tensor({5, 4, 3}, 1).transpose(0, 2);
  EXPECT_TRUE(dropout(x, draw).equal(dropout(x.contiguous(), draw)));
}

TEST(Dropout, EachMisfitIsAnInputError) {
  const at::Tensor x = at::zeros({2, 3, 4});
  EXPECT_THROW(dropout(x, {.probability = 1.0}), InputError);
  EXPECT_THROW(dropout(x, {.probability = -0.1}), InputError);
  EXPECT_THROW(dropout(x[0], {.probability = 0.5}), InputError);
  EXPECT_THROW(dropout(x.to(at::kLong), {.probability = 0.5}), InputError);
  EXPECT_THROW(dropout(x, {.probability = 0.5, .sample_ids = at::zeros({3}, at::kLong)}), InputError);
}

}  // namespace
}  // namespace routing::dropout_test
