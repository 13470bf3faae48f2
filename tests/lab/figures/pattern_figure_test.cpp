#include "lab/figures/pattern_figure.h"

#include "routing/core/error.h"
#include "support/figure_files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <cairo.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <tuple>

namespace routing::pattern_figure_test {
namespace {

namespace fs = std::filesystem;

class PatternFigureTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

// Causal, strided by 3: query i reads key j through group i mod 3; its own key counts twice.
PatternPanel strided_panel(std::int64_t num_queries, std::int64_t num_keys) {
  PatternPanel panel{"strided", "stride 3", num_queries, num_keys, {}, {}};
  for (std::int64_t query = 0; query < num_queries; ++query) {
    for (std::int64_t key = 0; key < num_keys; ++key) {
      const bool read = key <= query && (query - key) % 3 == 0;
      panel.group.push_back(read ? static_cast<std::int32_t>(query % 3) : -1);
      panel.count.push_back(read ? (key == query ? 2 : 1) : 0);
    }
  }
  return panel;
}

PatternFigure small_figure() {
  return {"Reads <here> & there",
          {{"causal", {strided_panel(9, 9), strided_panel(64, 64)}}, {"cross", {strided_panel(5, 12)}}}};
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST_F(PatternFigureTest, EveryCellOfThePngHasTheColourOfItsGroupAndItsMark) {
  const PatternFigure figure = small_figure();
  write_pattern_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  ASSERT_TRUE(image.readable());
  const PatternLayout layout = pattern_layout(figure);
  for (std::size_t row = 0; row < figure.rows.size(); ++row) {
    for (std::size_t column = 0; column < figure.rows[row].panels.size(); ++column) {
      const PatternPanel& panel = figure.rows[row].panels[column];
      const PatternLayout::Box& box = layout.boxes[row][column];
      for (std::int64_t cell = 0; cell < panel.num_queries * panel.num_keys; ++cell) {
        const std::int64_t query = cell / panel.num_keys;
        const std::int64_t key = cell % panel.num_keys;
        const double x = box.left + box.cell * (static_cast<double>(key) + 0.5);
        const double y = box.top + box.cell * (static_cast<double>(query) + 0.5);
        const std::int32_t group = panel.group[static_cast<std::size_t>(cell)];
        const Colour plain = group < 0 ? kBackground : group_colour(group);
        const bool marked = panel.count[static_cast<std::size_t>(cell)] > 1;
        EXPECT_TRUE(same_colour(image.at(x, y), marked ? kInk : plain)) << panel.title << " cell " << cell;
        // Between the mark and the border the colour of the group stays.
        EXPECT_TRUE(same_colour(image.at(x - box.cell * 0.35, y - box.cell * 0.35), plain)) << "cell " << cell;
      }
    }
  }
}

TEST_F(PatternFigureTest, PngIsAsLargeAsTheLayoutSays) {
  const PatternFigure figure = small_figure();
  write_pattern_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  const PatternLayout layout = pattern_layout(figure);
  EXPECT_EQ(image.width(), static_cast<int>(std::ceil(layout.width * kPixelsPerUnit)));
  EXPECT_EQ(image.height(), static_cast<int>(std::ceil(layout.height * kPixelsPerUnit)));
}

TEST_F(PatternFigureTest, CellsStandOnWholePixelsAndPanelsDoNotOverlap) {
  const PatternFigure figure = small_figure();
  const PatternLayout layout = pattern_layout(figure);
  for (const auto& row : layout.boxes) {
    for (const PatternLayout::Box& box : row) {
      for (const double length : {box.left, box.top, box.cell}) {
        EXPECT_EQ(length * kPixelsPerUnit, std::round(length * kPixelsPerUnit));
      }
    }
  }
  const PatternLayout::Box& first = layout.boxes[0][0];
  EXPECT_LT(first.left + 9 * first.cell, layout.boxes[0][1].left);
  EXPECT_LT(first.top + 9 * first.cell, layout.boxes[1][0].top);
  EXPECT_EQ(first.left, layout.boxes[1][0].left);
}

TEST_F(PatternFigureTest, SvgHoldsTheTitleAndOneRectangleForEveryCellThatIsRead) {
  PatternFigure figure = small_figure();
  for (auto& count : figure.rows[0].panels[0].count) count = count > 0 ? 1 : 0;
  // One row, one panel, small enough to count by hand: 9 + 6 + 3 cells on the diagonals 0, 3 and 6.
  figure.rows = {{"causal", {figure.rows[0].panels[0]}}};
  write_pattern_figure(figure, folder_ / "figure.svg");
  const std::string svg = text_of(folder_ / "figure.svg");
  EXPECT_NE(svg.find("<title>Reads &lt;here&gt; &amp; there</title>"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  // All cells of a panel's group are one path; the legend draws one more for each of its colours. Cairo 1.16 writes
  // colours into a style, 1.18 into an attribute.
  std::size_t cells = 0;
  for (std::size_t at = svg.find("<path "); at != std::string::npos; at = svg.find("<path ", at + 1)) {
    const std::string path = svg.substr(at, svg.find("/>", at) - at);
    const bool filled = occurrences(path, "fill:rgb(") + occurrences(path, "fill=\"rgb(") > 0;
    if (filled && occurrences(path, "Z") > 1) cells += occurrences(path, "Z");
  }
  EXPECT_EQ(cells, 18U);
}

TEST_F(PatternFigureTest, ExtensionMayBeUpperCase) {
  write_pattern_figure(small_figure(), folder_ / "figure.PNG");
  EXPECT_TRUE(FigureImage(folder_ / "figure.PNG").readable());
}

TEST_F(PatternFigureTest, OneTokenAndManyTokensAreDrawnToo) {
  write_pattern_figure({"one", {{"causal", {strided_panel(1, 1)}}}}, folder_ / "one.png");
  write_pattern_figure({"many", {{"causal", {strided_panel(700, 700)}}}}, folder_ / "many.png");
  EXPECT_TRUE(FigureImage(folder_ / "one.png").readable());
  EXPECT_GE(FigureImage(folder_ / "many.png").width(), 700);
}

TEST_F(PatternFigureTest, FinishedFileReplacesTheOldOneAndLeavesNoOther) {
  std::ofstream(folder_ / "figure.png") << "old";
  write_pattern_figure(small_figure(), folder_ / "figure.png");
  EXPECT_TRUE(FigureImage(folder_ / "figure.png").readable());
  EXPECT_EQ(folder_.num_entries(), 1U);
}

TEST_F(PatternFigureTest, SameFigureGivesTheSamePng) {
  for (const char* name : {"a.png", "b.png"}) write_pattern_figure(small_figure(), folder_ / name);
  EXPECT_TRUE(text_of(folder_ / "a.png") == text_of(folder_ / "b.png"));
}

TEST_F(PatternFigureTest, OtherExtensionsAreRefusedAndTheTwoAreNamed) {
  for (const char* name : {"figure.jpg", "figure", "png", "figure.png.gz"}) {
    const std::string message = message_of<ConfigError>([&] { write_pattern_figure(small_figure(), folder_ / name); });
    EXPECT_NE(message.find(".png or .svg"), std::string::npos) << name << ": " << message;
  }
  EXPECT_EQ(folder_.num_entries(), 0U);
}

TEST_F(PatternFigureTest, MissingFolderIsAFileErrorWithPathReasonAndRemedy) {
  const fs::path path = folder_ / "no_such_folder" / "figure.png";
  const std::string message = message_of<FileError>([&] { write_pattern_figure(small_figure(), path); });
  EXPECT_NE(message.find(path.string()), std::string::npos) << message;
  EXPECT_NE(message.find("No such file or directory"), std::string::npos) << message;
  EXPECT_NE(message.find("choose a file in a folder that exists"), std::string::npos) << message;
}

TEST_F(PatternFigureTest, FailedReplacementLeavesNothingBehind) {
  fs::create_directories(folder_ / "figure.png");  // a folder where the file should go
  EXPECT_THROW(write_pattern_figure(small_figure(), folder_ / "figure.png"), FileError);
  EXPECT_EQ(folder_.num_entries(), 1U);
}

TEST_F(PatternFigureTest, VectorsOfTheWrongLengthAreRefusedWithBothNumbers) {
  PatternFigure figure = small_figure();
  figure.rows[0].panels[0].group.pop_back();
  std::string message = message_of<InputError>([&] { write_pattern_figure(figure, folder_ / "figure.png"); });
  EXPECT_NE(message.find("group has 80 entries"), std::string::npos) << message;
  EXPECT_NE(message.find("need 81"), std::string::npos) << message;

  figure = small_figure();
  figure.rows[0].panels[0].count.push_back(0);
  message = message_of<InputError>([&] { write_pattern_figure(figure, folder_ / "figure.png"); });
  EXPECT_NE(message.find("count has 82 entries"), std::string::npos) << message;
}

TEST_F(PatternFigureTest, GroupAndCountThatDisagreeAreRefused) {
  PatternFigure figure = small_figure();
  figure.rows[0].panels[0].count[0] = 0;
  EXPECT_THROW(write_pattern_figure(figure, folder_ / "figure.png"), InputError);
}

TEST_F(PatternFigureTest, EmptyFiguresRowsAndPanelsAreRefused) {
  EXPECT_THROW(write_pattern_figure({"empty", {}}, folder_ / "figure.png"), InputError);
  EXPECT_THROW(write_pattern_figure({"empty", {{"causal", {}}}}, folder_ / "figure.png"), InputError);
  EXPECT_THROW(write_pattern_figure({"empty", {{"causal", {PatternPanel{}}}}}, folder_ / "figure.png"), InputError);
}

TEST_F(PatternFigureTest, FigureLargerThanAnImageCanBeIsRefused) {
  PatternFigure figure{"wide", {{"causal", {}}}};
  figure.rows[0].panels.assign(100, strided_panel(2, 2));
  EXPECT_THROW(write_pattern_figure(figure, folder_ / "figure.png"), InputError);
}

TEST(GroupColour, FirstTwentyFourGroupsAreAllDifferentAndNoneIsBackgroundOrInk) {
  std::set<std::tuple<double, double, double>> seen;
  for (const Colour& colour : {kBackground, kInk}) seen.emplace(colour.red, colour.green, colour.blue);
  for (std::int32_t group = 0; group < 24; ++group) {
    const Colour colour = group_colour(group);
    EXPECT_TRUE(seen.emplace(colour.red, colour.green, colour.blue).second) << group;
  }
  EXPECT_EQ(group_colour(24), group_colour(0));
  EXPECT_THROW(group_colour(-1), InputError);
}

}  // namespace
}  // namespace routing::pattern_figure_test
