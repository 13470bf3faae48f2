#include "routing/ops/dense/adaptive_softmax.h"

#include "routing/core/error.h"
#include "support/finite_differences.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

namespace routing::adaptive_softmax_test {
namespace {

using support::random_tensor;

struct Problem {
  std::vector<SoftmaxBand> bands;
  at::Tensor hidden;

  // All that gradients are wanted of: hidden, then table, bias and projection of each band.
  std::vector<at::Tensor> leaves() const {
    std::vector<at::Tensor> all{hidden};
    for (const SoftmaxBand& band : bands) {
      for (const at::Tensor& tensor : {band.table, band.bias, band.projection}) {
        if (tensor.defined()) all.push_back(tensor);
      }
    }
    return all;
  }
  Problem with(const std::vector<at::Tensor>& values) const {
    Problem other{bands, values.front()};
    std::size_t next = 1;
    for (SoftmaxBand& band : other.bands) {
      for (at::Tensor* tensor : {&band.table, &band.bias, &band.projection}) {
        if (tensor->defined()) *tensor = values[next++];
      }
    }
    return other;
  }
};

// Bands of so many words, the first as wide as the rows, the others a third of the one before.
Problem make_problem(std::int64_t rows, std::int64_t width, const std::vector<std::int64_t>& words,
                     at::ScalarType type = at::kFloat) {
  Problem made{.bands = {}, .hidden = random_tensor({rows, width}, 1).to(type)};
  std::int64_t of_band = width;
  for (std::size_t band = 0; band < words.size(); ++band) {
    const std::int64_t symbols = band == 0 ? static_cast<std::int64_t>(words.size()) - 1 : 0;
    SoftmaxBand& next = made.bands.emplace_back();
    next.table = random_tensor({words[band] + symbols, of_band}, 10 + band).to(type);
    next.bias = random_tensor({words[band] + symbols}, 20 + band).to(type);
    if (band > 0) next.projection = random_tensor({of_band, width}, 30 + band).to(type);
    of_band = std::max<std::int64_t>(1, of_band / 3);
  }
  return made;
}

// Plain loops in double: the probability of each word, by the formula.
std::vector<double> probabilities(const Problem& problem, std::int64_t row) {
  const auto values = [](const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kDouble).contiguous();
    return std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  };
  const std::vector<double> h = values(problem.hidden[row]);
  std::vector<double> symbols;
  std::vector<double> all;
  for (std::size_t band = 0; band < problem.bands.size(); ++band) {
    const SoftmaxBand& of = problem.bands[band];
    std::vector<double> input = h;
    if (band > 0) {
      const std::vector<double> projection = values(of.projection);
      input.assign(static_cast<std::size_t>(of.projection.size(0)), 0.0);
      for (std::size_t i = 0; i < input.size(); ++i) {
        for (std::size_t j = 0; j < h.size(); ++j) input[i] += projection[i * h.size() + j] * h[j];
      }
    }
    const std::vector<double> table = values(of.table);
    std::vector<double> exponentials = values(of.bias);
    double sum = 0.0;
    for (std::size_t word = 0; word < exponentials.size(); ++word) {
      for (std::size_t i = 0; i < input.size(); ++i) exponentials[word] += table[word * input.size() + i] * input[i];
      exponentials[word] = std::exp(exponentials[word]);
      sum += exponentials[word];
    }
    const std::size_t further = problem.bands.size() - 1;
    const std::size_t words = exponentials.size() - (band == 0 ? further : 0);
    for (std::size_t word = 0; word < exponentials.size(); ++word) {
      const double inside = exponentials[word] / sum;
      if (word >= words) {
        symbols.push_back(inside);
      } else {
        all.push_back(band == 0 ? inside : symbols[band - 1] * inside);
      }
    }
  }
  return all;
}

at::Tensor every_word(std::int64_t rows, std::int64_t words) {
  return at::arange(rows, at::kLong) * 7 % words;
}

const std::vector<std::vector<std::int64_t>> kCuts{{11}, {4, 7}, {1, 1, 1}, {9, 1, 30}, {1200, 300, 2000}};

std::int64_t sum_of(const std::vector<std::int64_t>& words) {
  std::int64_t sum = 0;
  for (const std::int64_t count : words) sum += count;
  return sum;
}

TEST(AdaptiveSoftmax, HandWorkedBands) {
  // Of one number h = 1: the first band has logits ln 2, 0 and of its symbol ln 5; the second reads 2 h = 2 and has
  // logits ln 3, 0. Probabilities 2/8, 1/8 and 5/8 times 3/4, 1/4.
  const std::vector<SoftmaxBand> bands{
      {.table = at::tensor({std::log(2.0), 0.0, std::log(5.0)}).view({3, 1}).to(at::kFloat)},
      {.table = at::tensor({std::log(3.0) / 2.0, 0.0}).view({2, 1}).to(at::kFloat),
       .projection = at::full({1, 1}, 2.0F)}};
  const at::Tensor hidden = at::ones({5, 1});
  const at::Tensor nats = adaptive_softmax_loss(hidden, bands, at::tensor({3, 0, -1, 1, 2}, at::kLong));
  const at::Tensor expected = -at::tensor({5.0 / 32.0, 0.25, 1.0, 0.125, 15.0 / 32.0}).log().to(at::kFloat);
  EXPECT_TRUE(at::allclose(nats, expected, 1e-6, 1e-6)) << nats;
  EXPECT_TRUE(at::allclose(adaptive_log_probabilities(hidden, bands)[0],
                           at::tensor({0.25, 0.125, 15.0 / 32.0, 5.0 / 32.0}).log().to(at::kFloat), 1e-6, 1e-6));
}

TEST(AdaptiveSoftmax, EqualsPlainLoopsOverAllWordsWhichSumToOne) {
  for (const auto& words : kCuts) {
    const std::int64_t vocabulary = sum_of(words);
    const std::int64_t rows = 9;
    const Problem problem = make_problem(rows, 12, words);
    const at::Tensor targets = at::arange(rows, at::kLong) * (vocabulary / 2 + 1) % vocabulary;
    const at::Tensor nats = adaptive_softmax_loss(problem.hidden, problem.bands, targets);
    const at::Tensor logs = adaptive_log_probabilities(problem.hidden, problem.bands);
    ASSERT_EQ(logs.sizes(), at::IntArrayRef({rows, vocabulary}));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::vector<double> expected = probabilities(problem, row);
      ASSERT_EQ(static_cast<std::int64_t>(expected.size()), vocabulary);
      double sum = 0.0;
      for (std::int64_t word = 0; word < vocabulary; ++word) {
        const double wanted = std::log(expected[static_cast<std::size_t>(word)]);
        ASSERT_NEAR(logs[row][word].item<double>(), wanted, 2e-5 * std::max(1.0, std::abs(wanted)))
            << words.size() << " bands, row " << row << ", word " << word;
        sum += std::exp(logs[row][word].item<double>());
      }
      EXPECT_NEAR(sum, 1.0, 2e-6) << words.size() << " bands, row " << row;
      const auto target = static_cast<std::size_t>(targets[row].item<std::int64_t>());
      EXPECT_NEAR(nats[row].item<double>(), -std::log(expected[target]), 2e-5 * std::abs(std::log(expected[target])))
          << words.size() << " bands, row " << row;
    }
  }
}

TEST(AdaptiveSoftmax, OneBandIsTheDenseLossBitForBit) {
  const Problem problem = make_problem(70, 24, {1500});
  const at::Tensor targets = every_word(70, 1500);
  const auto gradients = [&](const auto& loss_of) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& leaf : problem.leaves()) leaves.push_back(leaf.detach().clone().requires_grad_());
    const at::Tensor loss = loss_of(leaves);
    auto all = torch::autograd::grad({loss}, leaves, {random_tensor({70}, 5).to(at::kFloat)});
    all.push_back(loss.detach());
    return all;
  };
  const auto banded = gradients([&](const auto& leaves) {
    const Problem same = problem.with(leaves);
    return adaptive_softmax_loss(same.hidden, same.bands, targets);
  });
  const auto dense =
      gradients([&](const auto& leaves) { return vocabulary_loss(leaves[0], leaves[1], leaves[2], targets); });
  ASSERT_EQ(banded.size(), dense.size());
  for (std::size_t i = 0; i < dense.size(); ++i) EXPECT_TRUE(at::equal(banded[i], dense[i])) << i;
}

// Targets of all bands, of one band alone, and of none.
TEST(AdaptiveSoftmax, GradientsEqualFiniteDifferencesInDouble) {
  const Problem problem = make_problem(5, 4, {3, 2, 3}, at::kDouble);
  for (const auto& targets : std::vector<std::vector<std::int64_t>>{
           {7, 0, 3, 4, 2}, {1, 2, 0, 1, 1}, {5, 6, 7, 5, 5}, {3, -1, 4, -1, 0}, {-1, -1, -1, -1, -1}}) {
    const at::Tensor ids = at::tensor(targets, at::kLong);
    const auto function = [&](const std::vector<at::Tensor>& values) {
      const Problem moved = problem.with(values);
      return adaptive_softmax_loss(moved.hidden, moved.bands, ids);
    };
    EXPECT_LT(support::jacobian_error(function, problem.leaves()), 1e-8) << ids;
  }
  const auto logs = [&](const std::vector<at::Tensor>& values) {
    const Problem moved = problem.with(values);
    return adaptive_log_probabilities(moved.hidden, moved.bands).flatten();
  };
  EXPECT_LT(support::jacobian_error(logs, problem.leaves()), 1e-8);
}

TEST(AdaptiveSoftmax, LogProbabilitiesInFloatHaveTheGradientsOfDouble) {
  const Problem problem = make_problem(6, 12, {40, 30, 50});
  const at::Tensor d = random_tensor({6, 120}, 3).to(at::kFloat);
  const auto gradients = [&](at::ScalarType type) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& leaf : problem.leaves()) leaves.push_back(leaf.to(type).detach().clone().requires_grad_());
    const Problem same = problem.with(leaves);
    return torch::autograd::grad({adaptive_log_probabilities(same.hidden, same.bands)}, leaves, {d.to(type)});
  };
  const auto got = gradients(at::kFloat);
  const auto wanted = gradients(at::kDouble);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(at::allclose(got[i].to(at::kDouble), wanted[i], 1e-4, 1e-4)) << i;
  }
}

TEST(AdaptiveSoftmax, ABandWithoutTargetsHasGradientsOfZeros) {
  const Problem problem = make_problem(4, 6, {5, 4, 3});
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& leaf : problem.leaves()) leaves.push_back(leaf.detach().clone().requires_grad_());
  const Problem same = problem.with(leaves);
  const at::Tensor nats = adaptive_softmax_loss(same.hidden, same.bands, at::tensor({0, 9, 4, 1}, at::kLong));
  const auto gradients = torch::autograd::grad({nats}, leaves, {at::ones({4})});
  // Hidden, table and bias of the first band, then table, bias and projection of the second and of the third.
  for (const std::size_t of_second : {3U, 4U, 5U}) {
    ASSERT_TRUE(gradients[of_second].defined());
    EXPECT_TRUE(at::equal(gradients[of_second], at::zeros_like(leaves[of_second]))) << of_second;
  }
  for (const std::size_t other : {0U, 1U, 2U, 6U, 7U, 8U}) {
    EXPECT_GT(gradients[other].abs().max().item<double>(), 1e-3) << other;
  }
}

TEST(AdaptiveSoftmax, BitsDependNeitherOnOtherRowsNorOnThreads) {
  const support::ThreadGuard guard;
  const std::vector<std::int64_t> words{700, 90, 40000};
  const Problem problem = make_problem(150, 27, words);
  const at::Tensor targets = at::arange(150, at::kLong) * 7919 % sum_of(words);
  const at::Tensor d = random_tensor({150}, 4).to(at::kFloat);
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    // The loss, log-probabilities, gradients of hidden and of the rest.
    const auto run = [&](std::int64_t first, std::int64_t count) {
      std::vector<at::Tensor> leaves;
      for (const at::Tensor& leaf : problem.leaves()) leaves.push_back(leaf.detach().clone());
      leaves[0] = leaves[0].narrow(0, first, count).clone();
      for (at::Tensor& leaf : leaves) leaf.requires_grad_();
      const Problem same = problem.with(leaves);
      const at::Tensor nats = adaptive_softmax_loss(same.hidden, same.bands, targets.narrow(0, first, count),
                                                    {.precision = precision, .chunk_rows = 64});
      auto results = torch::autograd::grad({nats}, leaves, {d.narrow(0, first, count)});
      results.insert(results.begin(), nats.detach());
      const at::NoGradGuard no_gradient;
      results.insert(results.begin(), adaptive_log_probabilities(same.hidden, same.bands, precision));
      return results;
    };
    set_num_threads(1);
    const auto whole = run(0, 150);
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      const auto again = run(0, 150);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_TRUE(at::equal(again[i], whole[i])) << threads << " threads, result " << i;
      }
      for (const std::int64_t rows : {1, 2, 65}) {
        const auto part = run(150 - rows, rows);
        for (std::size_t i = 0; i < 3; ++i) {
          EXPECT_TRUE(at::equal(part[i], whole[i].narrow(0, 150 - rows, rows)))
              << rows << " rows, " << threads << " threads, result " << i;
        }
      }
    }
  }
}

TEST(AdaptiveSoftmax, LogProbabilitiesAreTheNatsOfEveryWord) {
  const Problem problem = make_problem(3, 10, {30, 20, 40});
  const at::Tensor logs = adaptive_log_probabilities(problem.hidden, problem.bands);
  for (std::int64_t word = 0; word < 90; ++word) {
    const at::Tensor nats = adaptive_softmax_loss(problem.hidden, problem.bands, at::full({3}, word, at::kLong));
    EXPECT_TRUE(at::allclose(logs.select(1, word), -nats, 0.0, 2e-6)) << word;
  }
}

TEST(AdaptiveSoftmax, WhatDoesNotFitIsRefusedWithBothValues) {
  Problem problem = make_problem(2, 6, {5, 4});
  const at::Tensor targets = at::tensor({0, 8}, at::kLong);
  EXPECT_EQ(message_of<InputError>([&] {
              adaptive_softmax_loss(problem.hidden, problem.bands, at::tensor({0, 9}, at::kLong));
            }),
            "adaptive softmax: target 9 in row 1, but the vocabulary has 9 entries; use -1 for rows that do not count");
  EXPECT_EQ(message_of<InputError>([&] { adaptive_softmax_loss(problem.hidden, {}, targets); }),
            "adaptive softmax: there are no bands; give at least one");
  EXPECT_NE(message_of<InputError>([&] {
              adaptive_softmax_loss(problem.hidden, problem.bands, at::tensor({0}, at::kLong));
            }).find("targets are Long [1]"),
            std::string::npos);
  problem.bands[1].projection = random_tensor({3, 6}, 1).to(at::kFloat);
  EXPECT_EQ(message_of<InputError>([&] { adaptive_softmax_loss(problem.hidden, problem.bands, targets); }),
            "adaptive softmax: the projection of band 1 is [3, 6], but must be [2, 6]");
  problem.bands[0].projection = random_tensor({6, 6}, 1).to(at::kFloat);
  EXPECT_NE(message_of<InputError>([&] {
              adaptive_log_probabilities(problem.hidden, problem.bands);
            }).find("the first band has a projection"),
            std::string::npos);
}

}  // namespace
}  // namespace routing::adaptive_softmax_test
