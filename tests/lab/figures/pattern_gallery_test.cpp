#include "lab/figures/pattern_gallery.h"

#include "routing/attention/patterns/position_patterns.h"
#include "routing/attention/plan/plan_builder.h"
#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace routing::pattern_gallery_test {
namespace {

TEST(PanelOfPlan, ShowsTheFirstGroupAndTheNumberOfGroups) {
  PlanBuilder builder(self_layout(1, 1, 3), {.causal = true}, PlanBuilder::Lists::one);
  for (const std::vector<std::int32_t>& members : {std::vector<std::int32_t>{0, 2}, {0, 1, 2}}) {
    const ListRange range = builder.add_queries(members);
    builder.add_group(range, range);
  }
  builder.end_unit();
  const PatternPanel panel = panel_of_plan(builder.build(), "title", "caption");
  EXPECT_EQ(panel.title, "title");
  EXPECT_EQ(panel.caption, "caption");
  EXPECT_EQ(panel.group, (std::vector<std::int32_t>{0, -1, -1, 1, 1, -1, 0, 1, 0}));
  EXPECT_EQ(panel.count, (std::vector<std::int32_t>{2, 0, 0, 1, 1, 0, 2, 1, 2}));
}

TEST(PatternGallery, HasEveryPatternCausalAndBidirectional) {
  const PatternFigure figure = pattern_gallery(64, 1);
  ASSERT_EQ(figure.rows.size(), 4U);
  std::map<std::string, std::set<std::string>> titles;
  for (const PatternFigure::Row& row : figure.rows) {
    for (const PatternPanel& panel : row.panels) {
      titles[row.label].insert(panel.title);
      EXPECT_EQ(panel.group.size(), 64U * 64U);
      for (std::int64_t i = 0; i < 64 && row.label == "causal"; ++i) {
        for (std::int64_t j = i + 1; j < 64; ++j) {
          ASSERT_EQ(panel.count[static_cast<std::size_t>(i * 64 + j)], 0) << panel.title;
        }
      }
    }
  }
  const std::set<std::string> all{"full",
                                  "local, sliding",
                                  "local, block",
                                  "span",
                                  "strided",
                                  "fixed",
                                  "local, 2 dimensions",
                                  "random",
                                  "LSH",
                                  "routing, balanced",
                                  "routing, nearest",
                                  "routing, threshold"};
  EXPECT_EQ(titles["causal"], all);
  EXPECT_EQ(titles["bidirectional"], all);
}

// Tokens of a run share a direction and so a cluster: nearest routing shows the mixture.
TEST(PatternGallery, NearestRoutingFindsTheRunsOfTheMixture) {
  const PatternPanel panel = pattern_gallery(64, 1).rows[1].panels[2];
  ASSERT_EQ(panel.title, "routing, nearest");
  int together = 0;
  for (std::int64_t i = 1; i < 64; ++i) {
    if (i % 4 != 0) together += panel.count[static_cast<std::size_t>(i * 64 + i - 1)];
  }
  EXPECT_GT(together, 40);  // of 48 neighbours in one run; by chance about 8
}

// sqrt(64) = 8: the captions state the formula, and the cells obey it.
TEST(PatternGallery, CellsObeyTheCaptions) {
  const PatternFigure figure = pattern_gallery(64, 1);
  for (const PatternPanel& panel : figure.rows[0].panels) {
    for (std::int64_t i = 0; i < 64; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        const int count = panel.count[static_cast<std::size_t>(i * 64 + j)];
        if (panel.caption == "i - 8 < j <= i") {
          EXPECT_EQ(count, i - 8 < j ? 1 : 0);
        }
        if (panel.caption == "(i - j) mod 8 = 0, j <= i") {
          EXPECT_EQ(count, (i - j) % 8 == 0 ? 1 : 0);
        }
        if (panel.caption == "j mod 8 >= 6, j <= i") {
          EXPECT_EQ(count, j % 8 >= 6 ? 1 : 0);
        }
        if (panel.caption == "blocks of 2 x 2 pixels and 1 around, 5 wide") {
          const std::int64_t row = i / 15 - i / 15 % 2;
          const std::int64_t column = i / 3 % 5 - i / 3 % 5 % 2;
          EXPECT_EQ(count, j / 15 >= row - 1 && j / 3 % 5 >= column - 1 && j / 3 % 5 <= column + 2 ? 1 : 0);
        }
      }
    }
  }
  EXPECT_EQ(figure.rows[0].panels[1].caption, "i - 8 < j <= i");
  EXPECT_EQ(figure.rows[0].panels[4].caption, "(i - j) mod 8 = 0, j <= i");
  EXPECT_EQ(figure.rows[0].panels[5].caption, "j mod 8 >= 6, j <= i");
  EXPECT_EQ(figure.rows[0].panels[6].caption, "blocks of 2 x 2 pixels and 1 around, 5 wide");
}

TEST(PatternGallery, RefusesLengthsNobodyCouldRead) {
  EXPECT_THROW(pattern_gallery(3, 1), ConfigError);
  EXPECT_THROW(pattern_gallery(513, 1), ConfigError);
  EXPECT_NO_THROW(pattern_gallery(4, 1));
}

}  // namespace
}  // namespace routing::pattern_gallery_test
