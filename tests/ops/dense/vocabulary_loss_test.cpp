#include "routing/ops/dense/vocabulary_loss.h"

#include "routing/core/error.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <string>

namespace routing::vocabulary_loss_test {
namespace {

using support::random_tensor;

struct Case {
  at::Tensor hidden, weight, bias, targets, d_loss;
};

Case make_case(std::int64_t rows, std::int64_t width, std::int64_t vocabulary) {
  Case made{random_tensor({rows, width}, 1).to(at::kFloat), random_tensor({vocabulary, width}, 2).to(at::kFloat),
            random_tensor({vocabulary}, 3).to(at::kFloat), at::arange(rows, at::kLong) * 7919 % vocabulary,
            random_tensor({rows}, 4).to(at::kFloat)};
  for (std::int64_t row = 2; row < rows; row += 5) made.targets[row] = -1;
  return made;
}

// Loss and gradients of hidden, weight, bias.
std::vector<at::Tensor> run(const Case& c, const VocabularyLossOptions& options) {
  const std::vector<at::Tensor> leaves{c.hidden.detach().requires_grad_(), c.weight.detach().requires_grad_(),
                                       c.bias.detach().requires_grad_()};
  const at::Tensor loss = vocabulary_loss(leaves[0], leaves[1], leaves[2], c.targets, options);
  auto results = torch::autograd::grad({loss}, leaves, {c.d_loss});
  results.insert(results.begin(), loss.detach());
  return results;
}

// Torch's cross-entropy in double, on factors as they are multiplied (straight-through: rounding has slope 1).
std::vector<at::Tensor> oracle(const Case& c, MatmulPrecision precision) {
  const auto rounded = [&](const at::Tensor& tensor) {
    return (precision == MatmulPrecision::bf16 ? tensor.to(at::kBFloat16) : tensor).to(at::kDouble);
  };
  const std::vector<at::Tensor> leaves{rounded(c.hidden).requires_grad_(), rounded(c.weight).requires_grad_(),
                                       c.bias.to(at::kDouble).requires_grad_()};
  const at::Tensor logits = at::linear(leaves[0], leaves[1], leaves[2]);
  const at::Tensor loss = at::cross_entropy_loss(logits, c.targets, {}, at::Reduction::None, -1);
  auto results = torch::autograd::grad({loss}, leaves, {c.d_loss.to(at::kDouble)});
  results.insert(results.begin(), loss.detach());
  return results;
}

TEST(VocabularyLoss, HandWorkedRows) {
  // Logits (0, ln 3) and (0, 0): probabilities 1/4, 3/4 and 1/2, 1/2.
  const at::Tensor hidden = at::tensor({1.0F, 0.0F}).view({2, 1});
  const at::Tensor weight = at::tensor({0.0F, std::log(3.0F)}).view({2, 1});
  const at::Tensor loss = vocabulary_loss(hidden, weight, {}, at::tensor({0, 1}, at::kLong));
  EXPECT_TRUE(at::allclose(loss, at::tensor({std::log(4.0F), std::log(2.0F)})));
  EXPECT_TRUE(vocabulary_loss(hidden, weight, {}, at::tensor({-1, -1}, at::kLong)).equal(at::zeros({2})));
}

TEST(VocabularyLoss, EqualsTorchsCrossEntropyInDouble) {
  for (const auto& [rows, width, vocabulary] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {7, 3, 2}, {65, 17, 1000}, {130, 32, 1024}, {200, 24, 2500}}) {
    const Case c = make_case(rows, width, vocabulary);
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const auto got = run(c, {.precision = precision, .chunk_rows = 96});
      const auto wanted = oracle(c, precision);
      for (std::size_t i = 0; i < 4; ++i) {
        // In bf16 the gradient of the logits is rounded too: a relative error of 2^-9 in each term of the sums.
        const double error = (got[i].to(at::kDouble) - wanted[i]).abs().max().item<double>();
        const double size = wanted[i].abs().max().item<double>();
        const bool rounds = precision == MatmulPrecision::bf16 && (i == 1 || i == 2);
        EXPECT_LE(error, (rounds ? 1e-2 : 1e-5) * std::max(1.0, size))
            << rows << "x" << width << "x" << vocabulary << ", result " << i;
      }
    }
  }
}

TEST(VocabularyLoss, GradientsEqualFiniteDifferencesInDouble) {
  const at::Tensor targets = at::tensor({2, -1, 0, 4}, at::kLong);
  const std::vector<at::Tensor> inputs{random_tensor({4, 3}, 1), random_tensor({5, 3}, 2), random_tensor({5}, 3)};
  for (const std::int64_t chunk_rows : {3, 64}) {
    const auto function = [&](const std::vector<at::Tensor>& x) {
      return vocabulary_loss(x[0], x[1], x.size() > 2 ? x[2] : at::Tensor(), targets, {.chunk_rows = chunk_rows});
    };
    EXPECT_LT(support::jacobian_error(function, inputs), 1e-8);
    EXPECT_LT(support::jacobian_error(function, {inputs[0], inputs[1]}), 1e-8);
  }
}

TEST(VocabularyLoss, BitsDependNeitherOnRowsNorOnThreads) {
  const support::ThreadGuard guard;
  const Case c = make_case(200, 40, 1500);
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const VocabularyLossOptions options{.precision = precision, .chunk_rows = 128};
    set_num_threads(1);
    const auto whole = run(c, options);
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      const auto again = run(c, options);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(again[i].equal(whole[i])) << threads << " threads, result " << i;
      for (const std::int64_t rows : {1, 2, 63, 64, 65}) {
        const std::int64_t first = 200 - rows;
        const auto part = run({c.hidden.narrow(0, first, rows), c.weight, c.bias, c.targets.narrow(0, first, rows),
                               c.d_loss.narrow(0, first, rows)},
                              {.precision = precision});
        EXPECT_TRUE(part[0].equal(whole[0].narrow(0, first, rows))) << rows << " rows, " << threads << " threads";
        EXPECT_TRUE(part[1].equal(whole[1].narrow(0, first, rows))) << rows << " rows, " << threads << " threads";
      }
    }
  }
}

TEST(VocabularyLoss, LargeLogitsNeitherOverflowNorVanish) {
  const at::Tensor hidden = at::tensor({1.0F, -1.0F}).view({2, 1});
  const at::Tensor weight = at::tensor({1000.0F, -1000.0F, 0.0F}).view({3, 1});
  const at::Tensor loss = vocabulary_loss(hidden, weight, {}, at::tensor({0, 0}, at::kLong));
  EXPECT_TRUE(at::allclose(loss, at::tensor({0.0F, 2000.0F})));
}

TEST(VocabularyLoss, NotANumberIsNotHidden) {
  at::Tensor hidden = at::ones({2, 1});
  hidden[1][0] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor loss = vocabulary_loss(hidden, at::ones({1030, 1}), {}, at::tensor({0, 0}, at::kLong));
  EXPECT_NEAR(loss[0].item<double>(), std::log(1030.0), 1e-5);
  EXPECT_TRUE(std::isnan(loss[1].item<float>()));
}

TEST(VocabularyLoss, ALargeVocabularyWorks) {
  constexpr std::int64_t kVocabulary = 267735;
  const Case c = make_case(3, 4, kVocabulary);
  const auto got = run(c, {});
  const auto wanted = oracle(c, MatmulPrecision::fp32);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(at::allclose(got[i].to(at::kDouble), wanted[i], 1e-4, 1e-6)) << i;
}

TEST(VocabularyLoss, TakesNoRowsAndMetaTensors) {
  const at::Tensor weight = at::ones({7, 3}).requires_grad_();
  const at::Tensor loss = vocabulary_loss(at::empty({0, 3}), weight, {}, at::empty({0}, at::kLong));
  EXPECT_EQ(loss.sizes(), at::IntArrayRef({0}));
  EXPECT_TRUE(torch::autograd::grad({loss}, {weight}, {at::empty({0})})[0].equal(at::zeros({7, 3})));
  const auto meta = at::TensorOptions(at::kMeta);
  const at::Tensor hidden = at::empty({5, 3}, meta).requires_grad_();
  const at::Tensor on_meta =
      vocabulary_loss(hidden, at::empty({7, 3}, meta), {}, at::empty({5}, meta.dtype(at::kLong)));
  EXPECT_EQ(on_meta.sizes(), at::IntArrayRef({5}));
  EXPECT_EQ(torch::autograd::grad({on_meta}, {hidden}, {at::empty({5}, meta)})[0].sizes(), hidden.sizes());
}

TEST(VocabularyLoss, TargetOutsideOfTheVocabularyIsNamed) {
  for (const int target : {-2, 7}) {
    try {
      vocabulary_loss(at::ones({2, 3}), at::ones({7, 3}), {}, at::tensor({0, target}, at::kLong));
      FAIL() << target << " was taken";
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("target " + std::to_string(target) + " in row 1"), std::string::npos) << message;
      EXPECT_NE(message.find("7 entries"), std::string::npos) << message;
    }
  }
}

TEST(VocabularyLoss, EachMisfitIsAnInputError) {
  const at::Tensor hidden = at::ones({2, 3});
  const at::Tensor weight = at::ones({7, 3});
  const at::Tensor targets = at::zeros({2}, at::kLong);
  EXPECT_THROW(vocabulary_loss(hidden, at::ones({7, 4}), {}, targets), InputError);
  EXPECT_THROW(vocabulary_loss(hidden, weight, at::ones({6}), targets), InputError);
  EXPECT_THROW(vocabulary_loss(hidden, weight.to(at::kDouble), {}, targets), InputError);
  EXPECT_THROW(vocabulary_loss(hidden, weight, {}, at::zeros({3}, at::kLong)), InputError);
  EXPECT_THROW(vocabulary_loss(hidden, weight, {}, at::zeros({2})), InputError);
  EXPECT_THROW(vocabulary_loss(hidden, weight, {}, targets, {.chunk_rows = 0}), InputError);
}

}  // namespace
}  // namespace routing::vocabulary_loss_test
