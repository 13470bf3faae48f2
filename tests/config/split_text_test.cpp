#include "routing/config/split_text.h"

#include "support/experiment_cases.h"

#include <gtest/gtest.h>

#include <string>

namespace routing {
namespace {

using Parts = std::array<SplitPart, 3>;

TEST(SplitText, PartsAreSharesBytesOrTheRest) {
  EXPECT_EQ(parse_split("90%/5%/5%"), (Parts{{{.percent = 90.0}, {.percent = 5.0}, {.percent = 5.0}}}));
  EXPECT_EQ(parse_split("rest/0/2000000"), (Parts{{{}, {.bytes = 0}, {.bytes = 2000000}}}));
  EXPECT_EQ(parse_split("12.5%/7/rest"), (Parts{{{.percent = 12.5}, {.bytes = 7}, {}}}));
  EXPECT_EQ(parse_split("33.4%/33.3%/33.3%")[0].percent, 33.4) << "rounding of the sum is no error";
  EXPECT_EQ(split_names(), (std::vector<std::string>{"train", "valid", "test"}));
}

TEST(SplitText, OnlyNothingIsEmpty) {
  const Parts parts = parse_split("rest/0/0%");
  EXPECT_TRUE(parts[0].is_rest());
  EXPECT_FALSE(parts[0].is_empty());
  EXPECT_FALSE(parts[1].is_rest());
  EXPECT_TRUE(parts[1].is_empty());
  EXPECT_TRUE(parts[2].is_empty());
  EXPECT_FALSE(parse_split("rest/1/1%")[1].is_empty());
  EXPECT_FALSE(parse_split("rest/1/1%")[2].is_empty());
}

TEST(SplitText, WhatIsNoSplitIsRefusedWithTheGrammar) {
  const std::string grammar =
      "; write train/valid/test as shares such as 90%/5%/5%, byte counts, or rest for one of them";
  const auto refusal = [](const std::string& text) { return refusal_of([&] { parse_split(text); }); };
  for (const std::string part : {"", "x", "-5", "-5%", "101%", "%", "5 %", "1.5", "nan%", "5%%", "Rest"}) {
    EXPECT_EQ(refusal("rest/" + part + "/5%"),
              "data.split: '" + part + "' of 'rest/" + part +
                  "/5%' is neither a share between 0% and 100%, nor a count of bytes, nor rest" + grammar);
  }
  EXPECT_EQ(refusal("90%/10%"), "data.split: '90%/10%' has 2 parts instead of 3" + grammar);
  EXPECT_EQ(refusal("1/1/1/1"), "data.split: '1/1/1/1' has 4 parts instead of 3" + grammar);
  EXPECT_EQ(refusal("rest/rest/1"), "data.split: 'rest/rest/1' has 2 parts that are rest instead of 1" + grammar);
  EXPECT_EQ(refusal("90%/10%/5%"),
            "data.split: the shares of '90%/10%/5%' are 105% together, which is above 100%; lower one of them");
}

}  // namespace
}  // namespace routing
