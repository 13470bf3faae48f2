// The picture of a sequence: every cell, letter and pixel stands where it should, and can be read.
#include "lab/figures/sequence_figure.h"

#include "lab/figures/matrix_figure.h"
#include "routing/core/error.h"
#include "support/figure_files.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::sequence_figure_test {
namespace {

class SequenceFigureTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(SequenceFigureTest, CellsHaveTheColoursOfTheirClustersAndOutlinesOfWhatIsRead) {
  SequenceFigure figure{.title = "title", .caption = "caption", .cells = {}};
  for (int i = 0; i < 5000; ++i) figure.cells.push_back({.text = "x", .clusters = {i % 3}});
  figure.cells[100].clusters = {4, 5};
  figure.cells[101].clusters = {};
  figure.cells[200].weight = 0.7;
  figure.cells[300].asked = true;
  const SequenceLayout layout = sequence_layout(figure);
  EXPECT_FALSE(layout.named);
  write_sequence_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  ASSERT_TRUE(image.readable());
  const auto colour = [&](std::size_t cell, double share) {
    const SequenceLayout::Box& box = layout.boxes[cell];
    return image.at(box.left + box.width * share, box.top + box.height / 2.0);
  };
  EXPECT_TRUE(same_colour(colour(7, 0.5), cell_colour(1, false)));
  EXPECT_TRUE(same_colour(colour(4999, 0.5), cell_colour(1, false)));
  EXPECT_TRUE(same_colour(colour(100, 0.25), cell_colour(4, false)));
  EXPECT_TRUE(same_colour(colour(100, 0.75), cell_colour(5, false)));
  EXPECT_TRUE(same_colour(colour(101, 0.5), kBackground));
  EXPECT_TRUE(same_colour(colour(200, 0.02), kInk));
  EXPECT_FALSE(same_colour(colour(201, 0.02), kInk));
  EXPECT_TRUE(same_colour(colour(300, 0.02), {0.85, 0.0, 0.1}));
}

TEST_F(SequenceFigureTest, FewCellsHaveTextInRowsThatFitAndImagesHaveThreeCellsAPixel) {
  SequenceFigure figure{.title = "title", .caption = "caption", .cells = {}};
  for (int i = 0; i < 300; ++i) figure.cells.push_back({.text = i % 2 == 0 ? "a" : "longer word"});
  const SequenceLayout text = sequence_layout(figure);
  EXPECT_TRUE(text.named);
  EXPECT_GT(text.boxes[1].width, 2.0 * text.boxes[0].width);
  EXPECT_GT(text.rows.size(), 3U);
  for (std::size_t i = 1; i < text.boxes.size(); ++i) {
    EXPECT_LE(text.boxes[i].left + text.boxes[i].width, text.width);
    const bool same_row = text.boxes[i].top == text.boxes[i - 1].top;
    if (same_row) {
      EXPECT_GE(text.boxes[i].left, text.boxes[i - 1].left + text.boxes[i - 1].width);
    } else {
      EXPECT_GE(text.boxes[i].top, text.boxes[i - 1].top + text.boxes[i - 1].height);
    }
  }
  figure.image_width = 10;
  EXPECT_THROW(sequence_layout(figure), InputError) << "an image without its values";
  figure.values.resize(figure.cells.size());
  const SequenceLayout image = sequence_layout(figure);
  EXPECT_FALSE(image.named);
  EXPECT_EQ(image.rows.size(), 10U);
  EXPECT_EQ(image.boxes[30].left, image.boxes[0].left);
  EXPECT_EQ(image.boxes[30].top, image.boxes[0].top + image.boxes[0].height);
  EXPECT_EQ(image.boxes[0].height, 3.0 * image.boxes[0].width) << "a pixel is square";
  EXPECT_THROW(sequence_layout({.title = "none"}), InputError);
}

SequenceFigure text_of_cells(std::size_t count) {
  SequenceFigure figure{.title = "title", .caption = "caption", .cells = {}};
  for (std::size_t i = 0; i < count; ++i) figure.cells.push_back({.text = "x", .clusters = {1}});
  return figure;
}

TEST_F(SequenceFigureTest, ShortTextsUseTheirSpaceAndLongOnesKeepTheirLetters) {
  const SequenceLayout few = sequence_layout(text_of_cells(20));
  EXPECT_GE(few.scale, 2.0);
  EXPECT_GT(few.boxes[0].height, 40.0);
  const double used = few.boxes.back().left + few.boxes.back().width - few.boxes.front().left;
  EXPECT_GT(used, 0.7 * few.width) << "of the width of the sheet";
  for (const std::size_t count : {300U, 1500U, 4096U}) {
    const SequenceLayout many = sequence_layout(text_of_cells(count));
    EXPECT_TRUE(many.named) << count;
    EXPECT_GE(many.boxes[0].width, 13.0) << count;
    EXPECT_LE(many.height, 3000.0) << count;
  }
  EXPECT_FALSE(sequence_layout(text_of_cells(4097)).named);
}

TEST_F(SequenceFigureTest, WeightsStandUnderTheCellsThatAreRead) {
  SequenceFigure figure = text_of_cells(10);
  figure.cells[3].weight = 0.42;
  figure.cells[6].weight = 0.001;
  figure.cells[9].asked = true;
  EXPECT_EQ(weight_text(0.42), "42");
  EXPECT_EQ(weight_text(1.0), "100");
  EXPECT_EQ(weight_text(0.0049), "");
  EXPECT_EQ(weight_text(-1.0), "");
  const SequenceLayout layout = sequence_layout(figure);
  write_sequence_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  const auto has_number = [&](std::size_t cell) {
    const SequenceLayout::Box& box = layout.boxes[cell];
    for (double x = box.left; x < box.left + box.width; x += 0.5) {
      for (double y = box.top + box.height + 3.0; y < box.top + box.height + 10.0 * layout.scale; y += 0.5) {
        if (image.at(x, y).red < 0.7) return true;
      }
    }
    return false;
  };
  for (std::size_t cell = 0; cell < 10; ++cell) EXPECT_EQ(has_number(cell), cell == 3) << cell;
}

TEST_F(SequenceFigureTest, HeadsWithoutClustersAreColouredByWeight) {
  SequenceFigure figure = text_of_cells(6);
  for (SequenceCell& cell : figure.cells) cell.clusters.clear();
  figure.cells[1].weight = 0.1;
  figure.cells[2].weight = 0.9;
  const SequenceLayout layout = sequence_layout(figure);
  write_sequence_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  const auto blue = [&](std::size_t cell) {
    return image.at(layout.boxes[cell].left + 4.0, layout.boxes[cell].top + 5.0).blue;
  };
  EXPECT_EQ(blue(0), 1.0);
  EXPECT_LT(blue(1), 0.9);
  EXPECT_LT(blue(2), blue(1));
}

TEST_F(SequenceFigureTest, ImagesAreShownWithTheWeightsOfTheirPixels) {
  SequenceFigure figure{.title = "image", .caption = "caption", .cells = {}, .image_width = 2};
  figure.values = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30};
  for (int i = 0; i < 12; ++i) figure.cells.push_back({.clusters = {i % 2}});
  figure.cells[0].weight = 0.25;
  figure.cells[1].weight = 0.25;
  figure.cells[5].weight = 0.125;
  figure.cells[9].asked = true;
  const SequenceLayout layout = sequence_layout(figure);
  ASSERT_EQ(layout.pixels.size(), 4U);
  ASSERT_EQ(layout.weights.size(), 4U);
  write_sequence_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  const auto middle = [&](const SequenceLayout::Box& box) {
    return image.at(box.left + box.width / 2.0, box.top + box.height / 2.0);
  };
  EXPECT_TRUE(same_colour(middle(layout.pixels[0]), {1.0, 0.0, 0.0}));
  EXPECT_TRUE(same_colour(middle(layout.pixels[1]), {0.0, 1.0, 0.0}));
  EXPECT_TRUE(same_colour(middle(layout.pixels[2]), {0.0, 0.0, 1.0}));
  EXPECT_GT(middle(layout.pixels[3]).red, 0.5) << "what is not read yet is pale";
  EXPECT_TRUE(same_colour(middle(layout.weights[0]), matrix_colour(1.0)));
  EXPECT_TRUE(same_colour(middle(layout.weights[1]), matrix_colour(0.5))) << "the root of 0.125 / 0.5";
  EXPECT_TRUE(same_colour(middle(layout.weights[2]), matrix_colour(0.0)));
  EXPECT_TRUE(same_colour(middle(layout.boxes[4]), cell_colour(0, false)));
  // Side by side, none over another.
  EXPECT_GE(layout.weights[0].left, layout.pixels[1].left + layout.pixels[1].width);
  EXPECT_GE(layout.boxes[0].left, layout.weights[1].left + layout.weights[1].width);
  EXPECT_LE(layout.boxes[5].left + layout.boxes[5].width, layout.width);
}

}  // namespace
}  // namespace routing::sequence_figure_test
