#include "routing/model/token_inputs.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <cmath>

namespace routing::token_inputs_test {
namespace {

TEST(Shifted, PutsTheStartTokenFirstAndDropsTheLast) {
  const at::Tensor tokens = at::tensor({5, 6, 7, 8, 9, 10}, at::kLong).view({2, 3});
  const ModelConfig zero{.vocab_size = 12};
  EXPECT_TRUE(at::equal(shifted(zero, tokens), at::tensor({0, 5, 6, 0, 8, 9}, at::kLong).view({2, 3})));
  EXPECT_TRUE(at::equal(shifted(zero, at::full({1, 1}, 4, at::kLong)), at::zeros({1, 1}, at::kLong)));
  const ModelConfig own{.vocab_size = 12, .start_symbol = StartSymbol::own};
  EXPECT_TRUE(at::equal(shifted(own, tokens), at::tensor({12, 5, 6, 12, 8, 9}, at::kLong).view({2, 3})));
}

TEST(StartSymbol, IsIdZeroOrARowBehindTheVocabulary) {
  const ModelConfig zero{.vocab_size = 12};
  const ModelConfig own{.vocab_size = 12, .start_symbol = StartSymbol::own};
  EXPECT_EQ(start_id(zero), 0);
  EXPECT_EQ(start_id(own), 12);
  EXPECT_EQ(input_id(zero, 0, 7), 0);
  EXPECT_EQ(input_id(own, 0, 7), 12);
  EXPECT_EQ(input_id(zero, 3, 7), 7);
  EXPECT_EQ(input_id(own, 3, 7), 7);
  EXPECT_EQ(input_id(own, 3, 0), 0) << "an <eos> is read as such";
}

TEST(StartSymbol, OfItsOwnIsInNoText) {
  const ModelConfig own{.vocab_size = 12, .start_symbol = StartSymbol::own};
  EXPECT_EQ(message_of<InputError>([&] { input_id(own, 3, 12); }),
            "token 12 at position 2 is the start symbol, but ids of tokens are 0 to 11");
  EXPECT_EQ(message_of<InputError>([&] {
              shifted(own, at::full({1, 2}, 12, at::kLong));
            }),
            "a token is 12, the start symbol, but ids of tokens are 0 to 11");
}

TEST(Sinusoids, AreThoseOfVaswani) {
  const at::Tensor table = sinusoids(600, 6, at::kDouble);
  ASSERT_EQ(table.sizes(), at::IntArrayRef({600, 6}));
  // By hand: wavelengths of 1, 10000^(1/3) = 21.544… and 10000^(2/3) = 464.158… times 2 pi.
  const auto at_place = [&](std::int64_t row, std::int64_t column) { return table[row][column].item<double>(); };
  EXPECT_EQ(at_place(0, 0), 0.0);
  EXPECT_EQ(at_place(0, 1), 1.0);
  EXPECT_NEAR(at_place(1, 0), 0.841470984807897, 1e-14);
  EXPECT_NEAR(at_place(2, 1), -0.416146836547142, 1e-14);
  EXPECT_NEAR(at_place(500, 2), std::sin(500.0 / 21.544346900318843), 1e-12);
  EXPECT_NEAR(at_place(500, 5), std::cos(500.0 / 464.15888336127773), 1e-12);
  EXPECT_EQ(sinusoids(3, 5, at::kFloat).sizes(), at::IntArrayRef({3, 5})) << "odd widths end with a sine";
}

TEST(Sinusoids, OfPartAreAPartOfThose) {
  EXPECT_TRUE(at::equal(sinusoids(7, 16, at::kFloat), sinusoids(99, 16, at::kFloat).slice(0, 0, 7)));
}

TEST(SinusoidsFromBothEnds, CountRealTokensFromTheStartAndFromTheEnd) {
  at::Tensor valid = at::ones({2, 5}, at::kBool);
  valid[1][0] = false;  // padding may be anywhere
  valid[1][3] = false;
  const at::Tensor table = sinusoids_from_both_ends(5, valid, 8, at::kDouble);
  const at::Tensor one_way = sinusoids(5, 4, at::kDouble);
  ASSERT_EQ(table.sizes(), at::IntArrayRef({2, 5, 8}));
  const auto expect_place = [&](std::int64_t row, std::int64_t token, std::int64_t from_start, std::int64_t from_end) {
    EXPECT_TRUE(at::equal(table[row][token], at::cat({one_way[from_start], one_way[from_end]}))) << row << " " << token;
  };
  for (std::int64_t token = 0; token < 5; ++token) expect_place(0, token, token, 4 - token);
  expect_place(1, 1, 0, 2);
  expect_place(1, 2, 1, 1);
  expect_place(1, 4, 2, 0);
  EXPECT_TRUE(table[1][0].eq(0).all().item<bool>());
  EXPECT_TRUE(table[1][3].eq(0).all().item<bool>());
  EXPECT_TRUE(at::equal(sinusoids_from_both_ends(5, {}, 8, at::kDouble)[0], table[0]));
  EXPECT_EQ(sinusoids_from_both_ends(5, {}, 7, at::kFloat).sizes(), at::IntArrayRef({1, 5, 7}));
}

TEST(DropInputs, ReplacesAboutThatShareWhereverASampleStands) {
  const at::Tensor tokens = at::full({2, 4000}, 9, at::kLong);
  at::Tensor dropped = tokens.clone();
  drop_inputs(dropped, {.probability = 0.25, .key = 7}, at::tensor({3, 4}, at::kLong));
  const double share = dropped.eq(kStartToken).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(share, 0.25, 0.02);
  EXPECT_TRUE(dropped.eq(9).logical_or(dropped.eq(kStartToken)).all().item<bool>());
  at::Tensor swapped = tokens.clone();
  drop_inputs(swapped, {.probability = 0.25, .key = 7}, at::tensor({4, 3}, at::kLong));
  EXPECT_TRUE(at::equal(swapped.flip({0}), dropped));
}

TEST(CheckTokens, RefusesWhatIsNoBatchOfTokens) {
  const at::Tensor good = at::zeros({2, 3}, at::kLong);
  EXPECT_NO_THROW(check_tokens("here", good, {}));
  EXPECT_NO_THROW(check_tokens("here", good, at::ones({2, 3}, at::kBool)));
  EXPECT_THROW(check_tokens("here", {}, {}), InputError);
  EXPECT_THROW(check_tokens("here", good.to(at::kInt), {}), InputError);
  EXPECT_THROW(check_tokens("here", good[0], {}), InputError);
  EXPECT_THROW(check_tokens("here", good, at::ones({2, 4}, at::kBool)), InputError);
  EXPECT_THROW(check_tokens("here", good, at::ones({2, 3}, at::kLong)), InputError);
}

}  // namespace
}  // namespace routing::token_inputs_test
