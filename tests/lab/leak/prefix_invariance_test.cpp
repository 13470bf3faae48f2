// Whole models under changed futures, and leaks planted on purpose, each of which must be caught.
#include "lab/leak/prefix_invariance.h"

#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/model/transformer.h"
#include "routing/training/learner.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace routing::prefix_invariance_test {
namespace {

constexpr std::int64_t kTokens = 32;
constexpr std::int64_t kIds = 16;
constexpr std::int64_t kWidth = 8;

// A hand-written attention layer over embeddings of the tokens before each row. mask(i, j) says whether row i reads the
// input of row j, which is token j - 1.
struct ToyModel {
  std::function<bool(std::int64_t, std::int64_t)> mask = [](std::int64_t i, std::int64_t j) { return j <= i; };
  double of_mean = 0.0;  // how much of the mean over sequence and batch is added to every state

  at::Tensor operator()(const at::Tensor& tokens) const {
    const at::Tensor table = drawn({kIds, kWidth}, 1);
    const at::Tensor shifted =
        at::cat({at::zeros({tokens.size(0), 1}, at::kLong), tokens.narrow(1, 0, tokens.size(1) - 1)}, 1);
    at::Tensor x = table.index_select(0, shifted.flatten()).view({tokens.size(0), tokens.size(1), kWidth});
    if (of_mean > 0.0) x = x + of_mean * x.mean(at::IntArrayRef{0, 1}, /*keepdim=*/true);
    at::Tensor y = at::zeros_like(x);
    for (std::int64_t b = 0; b < x.size(0); ++b) {
      for (std::int64_t i = 0; i < x.size(1); ++i) y[b][i].copy_(attended(x[b], i));
    }
    return logits_of(x + y);
  }

 private:
  static at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) {
    at::Tensor values = at::empty(sizes, at::kFloat);
    RandomStream stream(seed, "toy");
    for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = static_cast<float>(stream.normal());
    return values;
  }
  static double dot(const float* a, const float* b) {
    double sum = 0.0;
    for (std::int64_t d = 0; d < kWidth; ++d) sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
    return sum;
  }
  // By plain loops: which bits a BLAS gives a row may depend on how many rows there are, on some processors.
  static at::Tensor logits_of(const at::Tensor& states) {
    const at::Tensor weight = drawn({kIds, kWidth}, 2);
    at::Tensor logits = at::empty({states.size(0), states.size(1), kIds}, at::kFloat);
    const auto* state = states.data_ptr<float>();
    auto* logit = logits.data_ptr<float>();
    for (std::int64_t row = 0; row < states.size(0) * states.size(1); ++row) {
      for (std::int64_t id = 0; id < kIds; ++id) {
        logit[row * kIds + id] = static_cast<float>(dot(state + row * kWidth, weight.data_ptr<float>() + id * kWidth));
      }
    }
    return logits;
  }
  at::Tensor attended(const at::Tensor& x, std::int64_t i) const {
    at::Tensor sum = at::zeros({kWidth});
    double weights = 0.0;
    const auto* rows = x.data_ptr<float>();
    for (std::int64_t j = 0; j < x.size(0); ++j) {
      if (!mask(i, j)) continue;
      const double weight = std::exp(dot(rows + i * kWidth, rows + j * kWidth) / kWidth);
      sum += weight * x[j];
      weights += weight;
    }
    return sum / weights;
  }
};

PrefixReport check(const LogitsFunction& logits) {
  return check_prefix_invariance(logits, random_tokens(2, kTokens, kIds, 5),
                                 {.vocab_size = kIds, .positions = 8, .batch_size = 3});
}

TEST(LargestChange, IsOfValuesWhoseBitsDiffer) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> before{1.0F, -2.0F, none, 4.0F};
  EXPECT_EQ(largest_change(before.data(), before.data(), 4), 0.0) << "even where it is not a number";
  const std::vector<float> after{1.25F, -2.5F, none, 4.0F};
  EXPECT_EQ(largest_change(before.data(), after.data(), 4), 0.5);
  EXPECT_EQ(largest_change(before.data(), after.data(), 1), 0.25);
  const std::vector<float> broken{1.0F, none, none, 4.0F};
  EXPECT_EQ(largest_change(before.data(), broken.data(), 4), std::numeric_limits<double>::infinity());
}

TEST(PrefixAudit, AToyThatReadsOnlyThePastIsCausal) {
  const PrefixReport report = check(ToyModel{});
  EXPECT_TRUE(report.causal());
  EXPECT_EQ(report.largest(), 0.0);
  EXPECT_EQ(report.rows_changed(), 0);
  EXPECT_EQ(report.worst(), nullptr);
  EXPECT_EQ(report.tokens, kTokens);
  EXPECT_EQ(report.sequences, 2);
  EXPECT_EQ(report.positions, 8);
  // At every position, and the last token of both sequences. Two other ways may meet a future that they do not change.
  const auto times = [&](FutureChange kind) {
    return std::count_if(report.changes.begin(), report.changes.end(),
                         [&](const PrefixChange& each) { return each.change == kind; });
  };
  EXPECT_EQ(times(FutureChange::drawn), 8);
  EXPECT_GE(times(FutureChange::reversed), 6);
  EXPECT_GE(times(FutureChange::replaced), 6);
  EXPECT_EQ(times(FutureChange::last), 2);
  std::int64_t rows = 0;
  for (const PrefixChange& each : report.changes) rows += each.first_changed + 1;
  EXPECT_EQ(report.rows_checked(), rows);
}

TEST(PrefixAudit, AKeyMaskOffByOneIsCaughtByEveryKindOfChange) {
  const PrefixReport report = check(ToyModel{.mask = [](std::int64_t i, std::int64_t j) { return j <= i + 1; }});
  EXPECT_FALSE(report.causal());
  for (const PrefixChange& each : report.changes) {
    // Row c reads the input of row c + 1, which is token c; nothing before it may differ.
    if (each.change == FutureChange::reversed && each.rows_changed == 0) continue;  // the same token may come back
    if (each.change == FutureChange::replaced && each.rows_changed == 0) continue;
    EXPECT_EQ(each.rows_changed, 1) << to_string(each.change) << " from " << each.first_changed;
    EXPECT_EQ(each.first_row, each.first_changed);
    EXPECT_GT(each.largest, 1e-6);
  }
  for (const FutureChange kind : kEvery<FutureChange>) {
    EXPECT_TRUE(std::any_of(report.changes.begin(), report.changes.end(), [&](const auto& each) {
      return each.change == kind && each.rows_changed == 1;
    })) << to_string(kind);
  }
}

TEST(PrefixAudit, AnUnmaskedBlockIsCaught) {
  // Rows 8 … 15 read all of 8 … 15.
  const PrefixReport report =
      check(ToyModel{.mask = [](std::int64_t i, std::int64_t j) { return j <= i || (i >= 8 && i < 16 && j < 16); }});
  ASSERT_FALSE(report.causal());
  for (const PrefixChange& each : report.changes) {
    const std::int64_t c = each.first_changed;
    if (each.change != FutureChange::drawn) continue;
    // Changed tokens c … 14 are inputs c + 1 … 15, which rows 8 … c read too early.
    EXPECT_EQ(each.rows_changed, c >= 8 && c < 15 ? c - 7 : 0) << c;
    if (each.rows_changed > 0) {
      EXPECT_EQ(each.first_row, 8);
    }
  }
}

TEST(PrefixAudit, AStatisticOfTheWholeBatchIsCaughtHoweverSmall) {
  const PrefixReport report = check(ToyModel{.of_mean = 1e-3});
  ASSERT_FALSE(report.causal());
  EXPECT_EQ(report.rows_changed(), report.rows_checked()) << "a mean reaches every row";
  EXPECT_LT(report.largest(), 0.1);
  ASSERT_NE(report.worst(), nullptr);
  EXPECT_EQ(report.worst()->rows_changed, kTokens - 1);
}

TEST(PrefixAudit, ALogitThatBecomesNaNIsALeak) {
  const PrefixReport report = check([](const at::Tensor& tokens) {
    at::Tensor logits = ToyModel{}(tokens);
    // From the last token that is read into the first row.
    const at::Tensor odd = tokens.select(1, kTokens - 2).remainder(2).eq(1);
    logits.select(1, 0).masked_fill_(odd.unsqueeze(1), std::nan(""));
    return logits;
  });
  EXPECT_FALSE(report.causal());
  EXPECT_TRUE(std::isinf(report.largest()));
}

TEST(PrefixAudit, WhatHasNoFutureIsRefused) {
  const auto refused = [](const at::Tensor& tokens, const PrefixInvarianceOptions& options) {
    return message_of<InputError>([&] { check_prefix_invariance(ToyModel{}, tokens, options); });
  };
  EXPECT_NE(refused(random_tokens(1, 1, kIds, 1), {.vocab_size = kIds}).find("no future to change"), std::string::npos);
  EXPECT_NE(refused(random_tokens(1, 9, 1, 1), {.vocab_size = 1}).find("over 1 ids"), std::string::npos);
  EXPECT_NE(refused(random_tokens(1, 9, kIds, 1), {.positions = 0}).find("0 positions"), std::string::npos);
  EXPECT_NE(refused(random_tokens(1, 9, kIds, 1).to(at::kInt), {}).find("int64 [sequences, tokens]"),
            std::string::npos);
}

TEST(CutPositions, AreSpreadDrawnDistinctAndAllWhereTheyAreFew) {
  const std::vector<std::int64_t> cuts = cut_positions(1025, 16, 1);
  EXPECT_EQ(cuts.size(), 16U);
  EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
  EXPECT_EQ(std::adjacent_find(cuts.begin(), cuts.end()), cuts.end());
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(std::binary_search(cuts.begin(), cuts.end(), 64 + 128 * i)) << "the middle of part " << i;
  }
  EXPECT_NE(cuts, cut_positions(1025, 16, 2));
  EXPECT_EQ(cut_positions(5, 100, 1), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(cut_positions(2, 1, 1), (std::vector<std::int64_t>{0}));
}

TEST(WithOtherFuture, ChangesWhatItSaysAndNothingBefore) {
  const at::Tensor tokens = at::tensor({3, 1, 4, 1, 5, 9}, at::kLong);
  const at::Tensor other = at::tensor({2, 7, 1, 8, 2, 8}, at::kLong);
  const auto changed = [&](FutureChange change) {
    return with_other_future(tokens, {.change = change, .first = 2, .vocab_size = 10, .other = other});
  };
  EXPECT_TRUE(at::equal(changed(FutureChange::reversed), at::tensor({3, 1, 9, 5, 1, 4}, at::kLong)));
  EXPECT_TRUE(at::equal(changed(FutureChange::replaced), at::tensor({3, 1, 1, 8, 2, 8}, at::kLong)));
  const at::Tensor drawn = changed(FutureChange::drawn);
  EXPECT_TRUE(at::equal(drawn.ne(tokens).nonzero().flatten(), at::tensor({2, 3, 4, 5}, at::kLong)));
  EXPECT_TRUE(drawn.ge(0).logical_and(drawn.lt(10)).all().item<bool>());
  const at::Tensor last = changed(FutureChange::last);
  EXPECT_TRUE(at::equal(last.ne(tokens).nonzero().flatten(), at::tensor({4}, at::kLong)));
}

// Every pattern after real steps of training, in both precisions, over more tokens than its window.
TEST(PrefixAuditOfModels, EveryPatternIsCausalBitForBitExceptBalancedAfterTraining) {
  std::vector<ContentCase> cases = content_cases();
  const std::size_t plain = cases.size();
  for (std::size_t i = 0; i < plain; ++i) {
    // The same with relative positions everywhere, mean merging and norms behind the layers, as in the paper.
    ContentCase other = cases[i];
    other.name += ", relative";
    for (HeadGroupConfig* group : {&other.config.patterns.strided, &other.config.patterns.random,
                                   &other.config.patterns.lsh, &other.config.routing.group}) {
      group->relative = RelativePosition::rank;
      group->max_relative = 6;
      group->merge = Merge::mean;
    }
    other.config.model.norm = NormPlacement::post;
    cases.push_back(other);
  }
  for (ContentCase& each : cases) {
    each.config.model.vocab_size = kIds;
    each.config.train.learning_rate = 1e-2;
    Learner learner(each.config);
    for (std::int64_t step = 0; step < 4; ++step) {
      const TokenBatch batch{.tokens = random_tokens(2, 32, kIds, 50 + static_cast<std::uint64_t>(step)),
                             .sample_ids = at::arange(2),
                             .index = step};
      learner.step({&batch, 1});
    }
    learner.model().eval();
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const LogitsFunction logits = [&](const at::Tensor& tokens) {
        return learner.model().logits(tokens,
                                      {.sample_ids = at::zeros({tokens.size(0)}, at::kLong), .precision = precision});
      };
      const PrefixReport report = check_prefix_invariance(logits, random_tokens(2, 150, kIds, 9),
                                                          {.vocab_size = kIds, .positions = 12, .batch_size = 5});
      const bool balanced = each.name.rfind("balanced", 0) == 0;
      EXPECT_EQ(report.causal(), !balanced) << each.name << (precision == MatmulPrecision::bf16 ? " bf16" : " fp32");
      if (balanced) {
        EXPECT_GT(report.largest(), 1e-4) << each.name;
      }
    }
  }
}

}  // namespace
}  // namespace routing::prefix_invariance_test
