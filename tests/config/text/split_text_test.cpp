#include "routing/config/text/split_text.h"

#include "support/experiment_cases.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::split_text_test {
namespace {

using Parts = std::array<SplitPart, 3>;

const std::string kGrammar =
    "; write train/valid/test as shares such as 90%/5%/5%, byte counts, or rest for one of them";

SplitPart share(std::int64_t amount) {
  return {.unit = SplitUnit::share, .amount = amount};
}

SplitPart bytes(std::int64_t amount) {
  return {.unit = SplitUnit::bytes, .amount = amount};
}

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_split(text); });
}

TEST(SplitText, PartsAreSharesBytesOrTheRest) {
  EXPECT_EQ(parse_split("90%/5%/5%"), (Parts{share(900'000), share(50'000), share(50'000)}));
  EXPECT_EQ(parse_split("rest/0/2000000"), (Parts{SplitPart{}, bytes(0), bytes(2'000'000)}));
  EXPECT_EQ(parse_split("12.5%/0/rest"), (Parts{share(125'000), bytes(0), SplitPart{}}));
  EXPECT_EQ(parse_split("1/2/1152921504606846976"), (Parts{bytes(1), bytes(2), bytes(std::int64_t{1} << 60U)}));
  EXPECT_EQ(SplitPart{}.unit, SplitUnit::rest);
  EXPECT_EQ(split_names(), (std::vector<std::string>{"train", "valid", "test"}));
}

TEST(SplitText, SharesAreExactToFourDecimals) {
  EXPECT_EQ(parse_split("33.3333%/33.3333%/33.3334%"), (Parts{share(333'333), share(333'333), share(333'334)}));
  EXPECT_EQ(parse_split("99%/0.0001%/.9999%"), (Parts{share(990'000), share(1), share(9'999)}));
  EXPECT_EQ(parse_split("090.%/10.0000%/0%"), (Parts{share(900'000), share(100'000), share(0)}));
  EXPECT_EQ(refusal("50%/5.00001%/rest"),
            "data.split: '5.00001%' of '50%/5.00001%/rest' has 5 decimals, at most 4 are read; round it or give byte "
            "counts");
}

TEST(SplitText, SpacesAroundPartsDoNotMatter) {
  EXPECT_EQ(parse_split(" 60 / 20/  rest "), parse_split("60/20/rest"));
  EXPECT_EQ(parse_split("90% / 5% / 5%"), parse_split("90%/5%/5%"));
}

TEST(SplitText, OnlyNothingIsEmpty) {
  const Parts parts = parse_split("rest/0/0%");
  EXPECT_FALSE(parts[0].is_empty());
  EXPECT_TRUE(parts[1].is_empty());
  EXPECT_TRUE(parts[2].is_empty());
  EXPECT_FALSE(parse_split("rest/1/0")[1].is_empty());
  EXPECT_FALSE(parse_split("rest/0/0.0001%")[2].is_empty());
}

TEST(SplitText, WhatIsNoPartIsRefusedWithTheGrammar) {
  for (const std::string part : {"",
                                 "x",
                                 "ten",
                                 "-5",
                                 "+5",
                                 "-0",
                                 "5.5",
                                 "1e3",
                                 "5 5",
                                 "0x10",
                                 "99999999999999999999",
                                 "Rest",
                                 "-5%",
                                 "101%",
                                 "100.0001%",
                                 "99999999999999999999%",
                                 "%",
                                 ".%",
                                 "5 %",
                                 "5%%",
                                 "a%",
                                 "nan%",
                                 "1e1%",
                                 "5.-5%",
                                 "1.2.3%",
                                 "1.2.3.4.5%",
                                 "1152921504606846977"}) {
    EXPECT_EQ(refusal("rest/" + part + "/0"),
              "data.split: '" + part + "' of 'rest/" + part +
                  "/0' is neither a share between 0% and 100%, nor a count of bytes, nor rest" + kGrammar);
  }
}

TEST(SplitText, OtherThanThreePartsAreRefused) {
  EXPECT_EQ(refusal(""), "data.split: '' has 1 parts instead of 3" + kGrammar);
  EXPECT_EQ(refusal("90%/10%"), "data.split: '90%/10%' has 2 parts instead of 3" + kGrammar);
  EXPECT_EQ(refusal("1/1/1/1"), "data.split: '1/1/1/1' has 4 parts instead of 3" + kGrammar);
  EXPECT_EQ(refusal("1/1/1/"), "data.split: '1/1/1/' has 4 parts instead of 3" + kGrammar);
}

TEST(SplitText, TwoRestsAndMixedUnitsAreRefused) {
  EXPECT_EQ(refusal("rest/rest/1"), "data.split: 'rest/rest/1' has 2 parts that are rest, at most 1 can be" + kGrammar);
  EXPECT_EQ(refusal("90%/5/rest"),
            "data.split: '90%/5/rest' mixes shares (1) and byte counts (1); give all in one unit, beside 0 and rest");
  EXPECT_EQ(refusal("90%/10%/5"),
            "data.split: '90%/10%/5' mixes shares (2) and byte counts (1); give all in one unit, beside 0 and rest");
}

TEST(SplitText, SharesThatDoNotSumToAHundredAreRefusedWithTheirSum) {
  const std::string change = ", not to 100%; change one of them, or write rest for it";
  EXPECT_EQ(refusal("90%/5%/4%"), "data.split: the shares of '90%/5%/4%' sum to 99%" + change);
  EXPECT_EQ(refusal("90%/5%/5.5%"), "data.split: the shares of '90%/5%/5.5%' sum to 100.5%" + change);
  EXPECT_EQ(refusal("90%/5%/5.0001%"), "data.split: the shares of '90%/5%/5.0001%' sum to 100.0001%" + change);
  EXPECT_EQ(refusal("90%/0/0"), "data.split: the shares of '90%/0/0' sum to 90%" + change);
  EXPECT_EQ(refusal("90%/20%/rest"),
            "data.split: the shares of '90%/20%/rest' sum to 110%, which is above 100%; lower one of them");
  EXPECT_EQ(parse_split("90%/10%/rest")[2], SplitPart{});
}

}  // namespace
}  // namespace routing::split_text_test
