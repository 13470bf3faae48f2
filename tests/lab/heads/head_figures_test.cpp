// The figures of heads: every cell and mark stands where its value says.
#include "lab/figures/matrix_figure.h"
#include "lab/heads/head_shares_figure.h"
#include "routing/core/error.h"
#include "support/figure_files.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>

namespace routing::head_figures_test {
namespace {

namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class HeadFiguresTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

MatrixFigure small_matrices() {
  return {.title = "Matrices & <cells>",
          .caption = "nats",
          .low = 0.0,
          .high = 0.8,
          .high_name = "top",
          .panels = {{"layer 0", {"local 0", "routing 1"}, {0.0, 0.2, 0.6, 0.8}},
                     {"layer 1", {"a", "b", "c"}, {0, 0.1, kNan, 0.1, 0, 0.4, kNan, 0.4, 0}}}};
}

// Near the corner of a cell, where no number stands.
Colour corner(const FigureImage& image, const MatrixLayout::Box& box, int row, int column) {
  return image.at(box.left + box.cell * column + 4.0, box.top + box.cell * row + 4.0);
}

TEST_F(HeadFiguresTest, CellsHaveTheColoursOfTheirValues) {
  const MatrixFigure figure = small_matrices();
  write_matrix_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  ASSERT_TRUE(image.readable());
  const MatrixLayout layout = matrix_layout(figure);
  EXPECT_EQ(image.width(), static_cast<int>(layout.width * kPixelsPerUnit));
  for (const int row : {0, 1}) {
    for (const int column : {0, 1}) {
      const double value = figure.panels[0].values[static_cast<std::size_t>(2 * row + column)];
      EXPECT_TRUE(same_colour(corner(image, layout.boxes[0], row, column), matrix_colour(value / 0.8))) << value;
    }
  }
  EXPECT_TRUE(same_colour(corner(image, layout.boxes[1], 1, 2), matrix_colour(0.5)));
  // What is missing has a colour that no value has.
  const Colour missing = image.at(layout.boxes[1].left + layout.boxes[1].cell * 2.5, layout.boxes[1].top + 6.0);
  EXPECT_NEAR(missing.red, missing.blue, 0.01);
  EXPECT_LT(missing.red, 0.95);
}

TEST_F(HeadFiguresTest, ColoursDarkenWithTheValue) {
  const auto light = [](double share) {
    const Colour colour = matrix_colour(share);
    return colour.red + colour.green + colour.blue;
  };
  for (int i = 0; i < 20; ++i) EXPECT_GT(light(i / 20.0), light((i + 1) / 20.0));
  EXPECT_EQ(matrix_colour(0.0), kBackground);
  EXPECT_EQ(matrix_colour(-1.0), matrix_colour(0.0));
  EXPECT_EQ(matrix_colour(2.0), matrix_colour(1.0));
}

TEST_F(HeadFiguresTest, SvgOfMatricesHoldsItsTexts) {
  write_matrix_figure(small_matrices(), folder_ / "figure.svg");
  const std::string text = text_of(folder_ / "figure.svg");
  EXPECT_NE(text.find("Matrices &amp; &lt;cells&gt;"), std::string::npos);
}

TEST_F(HeadFiguresTest, MatricesOfAnotherSizeAreRefused) {
  MatrixFigure figure = small_matrices();
  figure.panels[0].values.pop_back();
  EXPECT_THROW(write_matrix_figure(figure, folder_ / "figure.png"), InputError);
  EXPECT_THROW(write_matrix_figure({.title = "empty", .caption = "", .panels = {}}, folder_ / "figure.png"),
               InputError);
  figure = small_matrices();
  figure.high = 0.0;
  EXPECT_THROW(write_matrix_figure(figure, folder_ / "figure.png"), InputError);
  EXPECT_THROW(write_matrix_figure(small_matrices(), folder_ / "figure.gif"), ConfigError);
  EXPECT_FALSE(fs::exists(folder_ / "figure.png"));
}

HeadSharesFigure small_shares() {
  return {.title = "Shares",
          .dot_name = "plan",
          .ring_name = "recent",
          .dash_name = "random",
          .kinds = {{"local", "routing"}, {"local", "local", "routing"}},
          .panels = {{"mass", {{{0.9, 0.5, 0.1}, {0.2, 0.5, 0.8}}, {{1, 0.5, 0}, {0, 0.5, 1}, {0.3, 0.6, 0.9}}}},
                     {"top", {{{0.1, 0.5, 0.9}, {0.7, 0.5, 0.3}}, {{0, 0.5, 1}, {1, 0.5, 0}, {0.9, 0.6, 0.3}}}}}};
}

TEST_F(HeadFiguresTest, DotsRingsAndDashesStandWhereTheirSharesSay) {
  const HeadSharesFigure figure = small_shares();
  write_head_shares_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  ASSERT_TRUE(image.readable());
  const HeadSharesLayout layout = head_shares_layout(figure);
  EXPECT_EQ(layout.kinds, (std::vector<std::string>{"local", "routing"}));
  for (std::size_t panel = 0; panel < 2; ++panel) {
    for (std::size_t layer = 0; layer < 2; ++layer) {
      for (std::size_t head = 0; head < figure.kinds[layer].size(); ++head) {
        const HeadShare& share = figure.panels[panel].layers[layer][head];
        const double x = layout.x[layer][head];
        const Colour colour = group_colour(figure.kinds[layer][head] == "local" ? 0 : 1);
        EXPECT_TRUE(same_colour(image.at(x, layout.y_of(panel, share.dot)), colour)) << panel << layer << head;
        // A ring is open in the middle.
        EXPECT_FALSE(same_colour(image.at(x, layout.y_of(panel, share.ring)), colour)) << panel << layer << head;
        const double ring = layout.y_of(panel, share.ring);
        EXPECT_TRUE(image.holds(kInk, x - 6.0, ring - 6.0, x + 6.0, ring + 6.0));
        EXPECT_FALSE(same_colour(image.at(x, layout.y_of(panel, share.dash)), kBackground));
      }
    }
  }
}

TEST_F(HeadFiguresTest, SharesOfOtherHeadsThanTheFigureHasAreRefused) {
  HeadSharesFigure figure = small_shares();
  figure.panels[1].layers[0].pop_back();
  EXPECT_THROW(write_head_shares_figure(figure, folder_ / "figure.png"), InputError);
  figure = small_shares();
  figure.panels[1].layers.pop_back();
  EXPECT_THROW(write_head_shares_figure(figure, folder_ / "figure.png"), InputError);
  figure.panels.clear();
  EXPECT_THROW(write_head_shares_figure(figure, folder_ / "figure.png"), InputError);
  EXPECT_THROW(write_head_shares_figure(small_shares(), folder_ / "figure.gif"), ConfigError);
}

}  // namespace
}  // namespace routing::head_figures_test
