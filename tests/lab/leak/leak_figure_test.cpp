#include "lab/leak/leak_figure.h"

#include "routing/core/error.h"
#include "support/figure_files.h"
#include "support/made_up_leak.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace routing::leak_figure_test {
namespace {

class LeakFigureTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

LeakReport small_report() {
  const std::vector<LeakRun> runs{made_up_balanced(), made_up_local()};
  return leak_report(runs, TokenKind::words);
}

TEST_F(LeakFigureTest, HasTheNumbersOfTheReport) {
  const LeakLayout layout = leak_layout(small_report());
  EXPECT_EQ(layout.rows, (std::vector<std::string>{"balanced", "local"}));
  EXPECT_NEAR(layout.row_points[0][1].value, 3.2 / 3.0, 1e-12);
  EXPECT_NEAR(layout.row_points[0][2].value, 4.65 / 3.0, 1e-12);
  ASSERT_EQ(layout.series.size(), 2U) << "local loses nothing";
  EXPECT_EQ(layout.series[0].name, "balanced, future replaced");
  EXPECT_EQ(layout.series[1].name, "balanced, prefix only");
  EXPECT_EQ(layout.series[0].quarters, (std::vector<std::size_t>{0, 2}));
  EXPECT_NEAR(layout.series[0].points[1].value, 0.2 / 3.0, 1e-12);
  EXPECT_NEAR(layout.series[1].points[0].value, 3.1 / 3.0, 1e-12);
  for (const LeakSeries& series : layout.series) {
    for (const LeakPoint& point : series.points) {
      EXPECT_GE(point.low, layout.losses.low);
      EXPECT_LE(point.high, layout.losses.high);
    }
  }
  EXPECT_LE(layout.losses.low, 0.0) << "the line of nothing lost is part of the plot";
}

TEST_F(LeakFigureTest, DrawsDotsWhereTheirValuesSay) {
  const LeakReport report = small_report();
  write_leak_figure(report, folder_ / "leak.png");
  const FigureImage image(folder_ / "leak.png");
  ASSERT_TRUE(image.readable());
  const LeakLayout at = leak_layout(report);
  EXPECT_EQ(image.width(), static_cast<int>(at.width) * kPixelsPerUnit);
  for (std::size_t row = 0; row < at.rows.size(); ++row) {
    for (std::size_t measure = 0; measure < 3; ++measure) {
      const LeakPoint& point = at.row_points[row][measure];
      EXPECT_TRUE(same_colour(image.at(at.x_of(point.value), at.y_of_row(row, measure)), leak_colour(measure)))
          << at.rows[row] << " " << kLeakMeasures[measure];
    }
  }
  for (std::size_t i = 0; i < at.series.size(); ++i) {
    for (std::size_t k = 0; k < at.series[i].points.size(); ++k) {
      EXPECT_TRUE(same_colour(
          image.at(at.x_of_quarter(i, at.series[i].quarters[k]), at.y_of_loss(at.series[i].points[k].value)),
          at.series[i].colour))
          << at.series[i].name << " " << k;
    }
  }
}

TEST_F(LeakFigureTest, TellsSelectionsThatLoseTheSameKindApart) {
  LeakRun random = made_up_local(1);
  random.selection = "random";
  random.likelihood.prefix_only = {.promised = false, .measured = 6, .different = 6};
  const std::vector<LeakRun> runs{made_up_balanced(), random};
  const LeakLayout layout = leak_layout(leak_report(runs, TokenKind::bytes));
  ASSERT_EQ(layout.series.size(), 3U);
  EXPECT_EQ(layout.series[0].colour, leak_colour(1));
  EXPECT_EQ(layout.series[1].colour, leak_colour(2));
  EXPECT_EQ(layout.series[2].name, "random, prefix only");
  EXPECT_FALSE(same_colour(layout.series[2].colour, layout.series[1].colour));
}

TEST_F(LeakFigureTest, LeavesTheLowerPlotOutWhereNothingIsLost) {
  const std::vector<LeakRun> runs{made_up_local()};
  const LeakReport report = leak_report(runs, TokenKind::bytes);
  const LeakLayout layout = leak_layout(report);
  EXPECT_TRUE(layout.series.empty());
  EXPECT_LT(layout.height, leak_layout(small_report()).height);
  write_leak_figure(report, folder_ / "leak.svg");
  const std::string svg = text_of(folder_ / "leak.svg");
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_THROW(write_leak_figure(report, folder_ / "leak.gif"), ConfigError);
}

}  // namespace
}  // namespace routing::leak_figure_test
