#include "lab/leak/leak_text.h"

#include "support/made_up_leak.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace routing::leak_text_test {
namespace {

LeakReport small_report(TokenKind tokens = TokenKind::words) {
  const std::vector<LeakRun> runs{made_up_balanced(), made_up_local(), made_up_full()};
  return leak_report(runs, tokens);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(LeakUnit, IsBitsOfBytesAndImagesAndNatsOfWords) {
  EXPECT_EQ(leak_unit(TokenKind::bytes).name, "bits/byte");
  EXPECT_DOUBLE_EQ(leak_unit(TokenKind::bytes).factor, 1.0 / std::log(2.0));
  EXPECT_EQ(leak_unit(TokenKind::words).name, "nats/token");
  EXPECT_EQ(leak_unit(TokenKind::subwords).factor, 1.0);
  EXPECT_EQ(leak_unit(TokenKind::subpixels).name, "bits/dim");
}

TEST(LeakMarkdown, SaysWhatWasMeasuredAndWhereNothingLeaks) {
  const std::string text = leak_markdown(small_report(), {.data = "the test part of x", .label = "partial data"});
  EXPECT_TRUE(has(text, "nats/token at 6 sampled positions of 3 windows of 8, the test part of x, partial data;"));
  EXPECT_TRUE(has(text, "| balanced | 1 | 1.0000 ± 0.2484 | 0.9167 ± 0.3126 | 1.0667 ± 0.1897 |")) << text;
  EXPECT_TRUE(has(text, "| 0.1500 ± 0.1242 | 0.6333 ± 0.0717 | selection reads the future |")) << text;
  EXPECT_TRUE(has(text, "| equal bit for bit (2 compared) | equal bit for bit (2 compared) | causal |")) << text;
  EXPECT_TRUE(has(text, "| balanced | local | 0.6000 ± 0.2484 | - | 25 % (5 % to 45 %) |")) << text;
  EXPECT_TRUE(has(text, "| balanced | full | -0.5333 ± 0.1434 | - | no gain to share | no gain to share |")) << text;
  EXPECT_TRUE(has(text, "| balanced | 3 |")) << text;
  EXPECT_FALSE(has(text, "| local | 3 |")) << "its quarters say nothing";
  EXPECT_FALSE(has(text, "Over seeds")) << "there is one seed";
}

TEST(LeakMarkdown, HasRowsAsLongAsTheirHeaders) {
  const std::vector<LeakRun> runs{made_up_balanced(1), made_up_balanced(2), made_up_local(1), made_up_local(2)};
  std::istringstream lines(leak_markdown(leak_report(runs, TokenKind::bytes)));
  std::int64_t columns = 0;
  int tables = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto bars = std::count(line.begin(), line.end(), '|');
    if (bars == 0) {
      columns = 0;
      continue;
    }
    if (columns == 0) ++tables;
    if (columns > 0) {
      EXPECT_EQ(bars, columns) << line;
    }
    columns = bars;
  }
  EXPECT_EQ(tables, 4) << "figures, seeds, shares, quarters";
}

TEST(LeakCsv, HasARowForEachNumber) {
  std::istringstream lines(leak_csv(small_report()));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "selection,quarter,measure,mean,low,high,deviation,values,unit");
  std::vector<std::string> rows;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 8) << line;
    rows.push_back(line);
  }
  // Three selections: one number of every token, five of the samples, five in each of two quarters; two gains.
  EXPECT_EQ(rows.size(), 3U * 16U + 2U);
  EXPECT_EQ(rows.front().rfind("balanced,0,every_token,1,", 0), 0U) << rows.front();
  EXPECT_EQ(rows.back().rfind("balanced,0,gain_over_full,-0.53", 0), 0U) << rows.back();
}

TEST(LeakJson, HoldsTheNumbersOfTheReport) {
  const LeakReport report = small_report(TokenKind::bytes);
  const auto object = nlohmann::json::parse(leak_json(report, {.label = "partial data"}));
  EXPECT_EQ(object.at("unit"), "bits/byte");
  EXPECT_EQ(object.at("data_label"), "partial data");
  EXPECT_FALSE(object.contains("data"));
  const auto& balanced = object.at("selections").at(0);
  EXPECT_EQ(balanced.at("selection"), "balanced");
  EXPECT_NEAR(balanced.at("sampled").at("leak").at("mean").get<double>(), 0.15 / std::log(2.0), 1e-12);
  EXPECT_NEAR(balanced.at("quarters").at(2).at("leak").at("mean").get<double>(), 0.2 / 3.0 / std::log(2.0), 1e-12);
  EXPECT_TRUE(balanced.at("quarters").at(1).is_null());
  EXPECT_EQ(balanced.at("future_replaced_equal").at("different"), 5);
  EXPECT_TRUE(object.at("selections").at(1).at("prefix_only_equal").at("promised").get<bool>());
  EXPECT_NEAR(object.at("shares").at(0).at("leak_share").at("ratio").get<double>(), 0.25, 1e-12);
  EXPECT_FALSE(object.at("shares").at(1).at("is_gain").get<bool>());
  EXPECT_TRUE(object.at("shares").at(1).at("leak_share").is_null());
  EXPECT_TRUE(balanced.at("leak_over_seeds").is_null());
}

}  // namespace
}  // namespace routing::leak_text_test
