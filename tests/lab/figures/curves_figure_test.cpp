#include "lab/figures/curves_figure.h"

#include "lab/figures/curve_stretches.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
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
#include <limits>
#include <memory>
#include <string>

namespace routing::curves_figure_test {
namespace {

namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class CurvesFigureTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

// A falling line, three dots and a reference, all apart.
CurvesFigure small_figure() {
  return {"Bits & <bytes>",
          "step",
          "bits per byte",
          {{"training", {0, 50, 100}, {8, 6, 5}}, {"evaluation", {25, 50, 75}, {3, 2.5, 3.5}, true}},
          {{"gzip -9", 2.1}}};
}

// Noise around a fall from about 8 to 2.5.
CurvesFigure long_figure() {
  RandomStream stream(1, "noise");
  Curve curve{"training", {}, {}};
  for (int step = 1; step <= 300; ++step) {
    curve.x.push_back(step);
    curve.y.push_back(2.5 + 5.5 * std::exp(-step / 25.0) + 0.1 * stream.normal());
  }
  return {"Long", "step", "bits per byte", {curve}, {{"xz -9", 2.09}}};
}

TEST_F(CurvesFigureTest, LinesDotsAndReferencesStandWhereTheirValuesSay) {
  const CurvesFigure figure = small_figure();
  write_curves_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  ASSERT_TRUE(image.readable());
  const CurvesLayout at = curves_layout(figure);
  for (const auto& [x, y] : {CurvePoint{25, 7}, CurvePoint{50, 6}, CurvePoint{75, 5.5}}) {
    EXPECT_TRUE(same_colour(image.at(at.x_of(x), at.y_of(y)), group_colour(0))) << x;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Curve& dots = figure.curves[1];
    EXPECT_TRUE(same_colour(image.at(at.x_of(dots.x[i]), at.y_of(dots.y[i])), group_colour(1))) << i;
  }
  // Dots are not joined, and the first curve is nowhere else.
  EXPECT_FALSE(same_colour(image.at(at.x_of(37), at.y_of(2.76)), group_colour(1)));
  EXPECT_FALSE(image.holds(group_colour(0), at.left, at.y_of(4.8), at.right, at.bottom));
  // Dashes: some of the line is drawn, some is not.
  const double y = at.y_of(2.1);
  bool dark = false;
  bool light = false;
  for (double x = at.x_of(5); x < at.x_of(15); x += 0.5) {
    const double red = image.at(x, y).red;
    dark = dark || red < 0.6;
    light = light || red > 0.85;
  }
  EXPECT_TRUE(dark);
  EXPECT_TRUE(light);
}

TEST_F(CurvesFigureTest, ACurveMayChooseItsColourAndItsSmoothing) {
  CurvesFigure figure{"t", "x", "y", {{"", {0, 1, 2, 3}, {4, 2, 4, 2}}}, {}};
  Curve& curve = figure.curves.front();
  curve.colour = 3;
  EXPECT_FALSE(is_smoothed(curve));
  curve.smoothing = 0.5;
  ASSERT_TRUE(is_smoothed(curve));
  const CurvesLayout at = curves_layout(figure);
  const CurveStretch line = main_line(curve, stretches_of(curve).front(), at.y);
  EXPECT_NEAR(line[1].y, 8.0 / 3.0, 1e-12);
  write_curves_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  EXPECT_TRUE(same_colour(image.at(at.x_of(1), at.y_of(line[1].y)), group_colour(3)));
  EXPECT_TRUE(
      image.holds(mix(kBackground, group_colour(3), 0.38), at.x_of(0.8), at.y_of(2.3), at.x_of(1.2), at.y_of(1.9)))
      << "the line as it is, pale";
  curve.smoothing = 0.0;
  curve.x.resize(kSmoothFrom);
  curve.y.resize(kSmoothFrom);
  EXPECT_FALSE(is_smoothed(curve)) << "as asked, however long";
}

TEST_F(CurvesFigureTest, GrowsWithItsNames) {
  CurvesFigure figure{"many", "x", "y", {}, {}};
  for (int i = 0; i < 40; ++i) figure.curves.push_back({"run " + std::to_string(i), {0, 1}, {1, 2}});
  const CurvesLayout layout = curves_layout(figure);
  EXPECT_GE(layout.bottom - layout.top, 40 * 16.0);
  EXPECT_GT(layout.height, curves_layout(small_figure()).height);
}

TEST_F(CurvesFigureTest, LowerValuesStandLowerAndLaterOnesFartherRight) {
  const CurvesLayout layout = curves_layout(small_figure());
  EXPECT_GT(layout.y_of(2.0), layout.y_of(3.0));
  EXPECT_LT(layout.x_of(2.0), layout.x_of(3.0));
  EXPECT_DOUBLE_EQ(layout.x_of(layout.x.high), layout.right);
  EXPECT_DOUBLE_EQ(layout.y_of(layout.y.high), layout.top);
  EXPECT_DOUBLE_EQ(layout.y_of(layout.y.low), layout.bottom);
}

TEST_F(CurvesFigureTest, AxesHoldEveryValueAndReferenceAndEndOnRoundNumbers) {
  const CurvesLayout layout = curves_layout(small_figure());
  EXPECT_EQ(layout.x, (AxisRange{0, 100}));
  EXPECT_EQ(layout.y, (AxisRange{2, 8}));
  EXPECT_EQ(layout.above, 0U);
  // Steps counted from 1 begin at 0; 5.5 + 2.5 at the start is still shown.
  const CurvesLayout whole = curves_layout(long_figure());
  EXPECT_EQ(whole.x, (AxisRange{0, 300}));
  EXPECT_EQ(whole.y.low, 2.0);
  EXPECT_GE(whole.y.high, 8.0);
  EXPECT_EQ(whole.above, 0U);
}

TEST_F(CurvesFigureTest, HugeFirstValuesAreCutOffAndCounted) {
  CurvesFigure figure = long_figure();
  figure.curves[0].y[0] = 1e6;
  figure.curves[0].y[1] = 900.0;
  const CurvesLayout layout = curves_layout(figure);
  EXPECT_EQ(layout.y.low, 2.0);
  EXPECT_LT(layout.y.high, 8.0);
  EXPECT_GT(layout.y.high, 2.6);
  std::size_t above = 0;
  for (const double y : figure.curves[0].y) above += y > layout.y.high ? 1 : 0;
  EXPECT_EQ(layout.above, above);
  EXPECT_GE(above, 2U);
  write_curves_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  // Nothing of the line leaves the plot upwards, and its later part is drawn.
  EXPECT_FALSE(image.holds(group_colour(0), layout.left, 0.0, layout.right, layout.top - 2.0));
  EXPECT_TRUE(image.holds(group_colour(0), layout.x_of(200), layout.top, layout.x_of(210), layout.bottom));
}

TEST_F(CurvesFigureTest, HighReferenceStaysInSight) {
  CurvesFigure figure = long_figure();
  figure.references.push_back({"uniform", 80.0});
  EXPECT_GE(curves_layout(figure).y.high, 80.0);
}

TEST_F(CurvesFigureTest, ValuesThatAreNotFiniteLeaveAGap) {
  CurvesFigure figure = {"gap", "x", "y", {{"", {0, 10, 20, 30, 40}, {1, 1, kNan, 1, 1}}}, {}};
  for (const double missing : {kNan, kInfinity, -kInfinity, 1e31}) {
    figure.curves[0].y[2] = missing;
    write_curves_figure(figure, folder_ / "figure.png");
    const FigureImage image(folder_ / "figure.png");
    const CurvesLayout at = curves_layout(figure);
    EXPECT_TRUE(same_colour(image.at(at.x_of(5), at.y_of(1)), group_colour(0)));
    EXPECT_FALSE(image.holds(group_colour(0), at.x_of(13), at.top, at.x_of(27), at.bottom));
    EXPECT_TRUE(same_colour(image.at(at.x_of(35), at.y_of(1)), group_colour(0)));
  }
}

TEST_F(CurvesFigureTest, SinglePointOfALineIsSeen) {
  const CurvesFigure figure = {"one", "x", "y", {{"", {0, 10, 20}, {1, kNan, 2}}}, {}};
  write_curves_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  const CurvesLayout at = curves_layout(figure);
  EXPECT_TRUE(same_colour(image.at(at.x_of(0) + 0.5, at.y_of(1) - 0.5), group_colour(0)));
}

TEST_F(CurvesFigureTest, FiguresWithoutValuesAreDrawnWithPlainAxes) {
  for (const CurvesFigure& figure : {CurvesFigure{}, CurvesFigure{"none", "x", "y", {{"empty", {}, {}}}, {}},
                                     CurvesFigure{"nan", "x", "y", {{"nan", {1, 2}, {kNan, kNan}}}, {{"r", kNan}}}}) {
    write_curves_figure(figure, folder_ / "figure.png");
    EXPECT_TRUE(FigureImage(folder_ / "figure.png").readable());
    const CurvesLayout layout = curves_layout(figure);
    EXPECT_EQ(layout.x, (AxisRange{0, 1}));
    EXPECT_EQ(layout.y, (AxisRange{0, 1}));
    EXPECT_LT(layout.left, layout.right);
  }
}

TEST_F(CurvesFigureTest, EqualValuesHaveARangeAroundThem) {
  for (const double value : {0.0, 5.0, -3.0, 1e30, 1e-300}) {
    const CurvesFigure figure = {"equal", "x", "y", {{"", {7, 7}, {value, value}, true}}, {}};
    const CurvesLayout layout = curves_layout(figure);
    EXPECT_LT(layout.y.low, value);
    EXPECT_GT(layout.y.high, value);
    EXPECT_TRUE(std::isfinite(layout.y_of(value)));
    write_curves_figure(figure, folder_ / "figure.png");
    const FigureImage image(folder_ / "figure.png");
    EXPECT_TRUE(same_colour(image.at(layout.x_of(7), layout.y_of(value)), group_colour(0))) << value;
  }
}

TEST_F(CurvesFigureTest, ValuesThatDifferInTheirLastDigitsCountAsEqual) {
  const double next = std::nextafter(1e9, 2e9);
  const CurvesFigure figure = {"close", "x", "y", {{"", {1e9, next}, {1e9, next}, true}}, {}};
  const CurvesLayout layout = curves_layout(figure);
  EXPECT_LT(layout.y.low, 0.95e9);
  EXPECT_GT(layout.x.high, 1.05e9);
  write_curves_figure(figure, folder_ / "figure.png");
  EXPECT_TRUE(FigureImage(folder_ / "figure.png").readable());
}

TEST_F(CurvesFigureTest, LongLinesAreSmoothedAndShortOnesAndDotsAreNot) {
  Curve curve = long_figure().curves[0];
  EXPECT_TRUE(is_smoothed(curve));
  const CurveStretch run = stretches_of(curve)[0];
  const CurveStretch line = main_line(curve, run, {2, 9});
  const auto roughness = [](const CurveStretch& points) {
    double sum = 0.0;
    for (std::size_t i = 200; i < points.size(); ++i) sum += std::abs(points[i].y - points[i - 1].y);
    return sum;
  };
  EXPECT_LT(roughness(line), 0.2 * roughness(run));
  for (std::size_t i = 20; i < line.size(); ++i) {
    EXPECT_NEAR(line[i].y, 2.5 + 5.5 * std::exp(-line[i].x / 25.0), 0.25) << i;
  }
  curve.points = true;
  EXPECT_EQ(main_line(curve, run, {2, 9}), run);
  curve = {"short", std::vector<double>(kSmoothFrom - 1, 1.0), std::vector<double>(kSmoothFrom - 1, 1.0)};
  EXPECT_FALSE(is_smoothed(curve));
}

TEST_F(CurvesFigureTest, RunsAreCutWhereAValueIsMissing) {
  const Curve curve{"", {0, 1, 2, kNan, 4, 5}, {kNan, 1, 2, 3, 4, -1e31}};
  EXPECT_EQ(stretches_of(curve), (std::vector<CurveStretch>{{{1, 1}, {2, 2}}, {{4, 4}}}));
  EXPECT_EQ(all_points({"", "", "", {curve, curve}, {}}).size(), 6U);
  EXPECT_TRUE(is_shown(-1e30));
  EXPECT_FALSE(is_shown(kInfinity));
}

TEST_F(CurvesFigureTest, LongerNamesLeaveLessRoomButNeverNone) {
  CurvesFigure figure = small_figure();
  const double before = curves_layout(figure).right;
  figure.curves[0].name = "a rather long name";
  EXPECT_LT(curves_layout(figure).right, before);
  figure.curves[0].name = std::string(500, 'm');
  EXPECT_GT(curves_layout(figure).right, curves_layout(figure).width / 2.0);
}

TEST_F(CurvesFigureTest, NamesHaveTheColourOfTheirCurveBesideItsEnd) {
  const CurvesFigure figure = small_figure();
  write_curves_figure(figure, folder_ / "figure.png");
  const FigureImage image(folder_ / "figure.png");
  const CurvesLayout at = curves_layout(figure);
  for (const auto& [curve, y] : {std::pair<std::int32_t, double>{0, 5.0}, {1, 3.5}}) {
    const Colour colour = mix(group_colour(curve), kInk, 0.15);
    EXPECT_TRUE(image.holds(colour, at.right + 5.0, at.y_of(y) - 8.0, at.width - 5.0, at.y_of(y) + 8.0)) << curve;
  }
}

TEST_F(CurvesFigureTest, PngIsAsLargeAsTheLayoutSaysAndTheSameEveryTime) {
  const CurvesLayout layout = curves_layout(long_figure());
  for (const char* name : {"a.png", "b.png"}) write_curves_figure(long_figure(), folder_ / name);
  EXPECT_EQ(FigureImage(folder_ / "a.png").width(), static_cast<int>(layout.width * kPixelsPerUnit));
  EXPECT_EQ(FigureImage(folder_ / "a.png").height(), static_cast<int>(layout.height * kPixelsPerUnit));
  EXPECT_TRUE(text_of(folder_ / "a.png") == text_of(folder_ / "b.png"));
}

TEST_F(CurvesFigureTest, SvgHoldsTheTitle) {
  write_curves_figure(small_figure(), folder_ / "figure.svg");
  const std::string svg = text_of(folder_ / "figure.svg");
  EXPECT_NE(svg.find("<title>Bits &amp; &lt;bytes&gt;</title>"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST_F(CurvesFigureTest, CurvesOfUnequalLengthsAreRefusedWithBothNumbers) {
  CurvesFigure figure = small_figure();
  figure.curves[0].y.pop_back();
  const std::string message = message_of<InputError>([&] { write_curves_figure(figure, folder_ / "figure.png"); });
  EXPECT_NE(message.find("curve 'training': x has 3 values, but y has 2"), std::string::npos) << message;
  EXPECT_FALSE(fs::exists(folder_ / "figure.png"));
}

TEST_F(CurvesFigureTest, OtherExtensionsAndMissingFoldersAreRefused) {
  EXPECT_THROW(write_curves_figure(small_figure(), folder_ / "figure.pdf"), ConfigError);
  EXPECT_THROW(write_curves_figure(small_figure(), folder_ / "none" / "figure.png"), FileError);
}

TEST_F(CurvesFigureTest, DoublingAxisHasEqualRoomForEqualRatiosAndPowersOfTwoAsTicks) {
  CurvesFigure figure = small_figure();
  figure.x_scale = AxisScale::doubling;
  figure.curves = {{"training", {96, 192, 1536}, {1, 0.9, 0.8}}};
  const CurvesLayout layout = curves_layout(figure);
  EXPECT_NEAR(layout.x_of(96), layout.left, 1e-9);
  EXPECT_NEAR(layout.x_of(384), (layout.left + layout.right) / 2.0, 1e-9);
  EXPECT_NEAR(layout.x_of(1536), layout.right, 1e-9);
  ASSERT_EQ(layout.x_ticks.size(), 4U);
  EXPECT_EQ(layout.x_ticks[0].label, "128");
  EXPECT_EQ(layout.x_ticks[3].label, "1024");
  figure.curves[0].x[0] = 0.0;
  EXPECT_NE(message_of<InputError>([&] { curves_layout(figure); }).find("above 0"), std::string::npos);
}

TEST_F(CurvesFigureTest, AxesOfOtherFiguresHoldEverythingAndEndOnTicksWithinWhatValuesCanBe) {
  CurvesFigure figure{"", "", "", {{"a", {0, 50, 100}, {0.97, 0.2, 0.96}}}, {}};
  CurvesLayout axes = curves_axes(figure, {.y_steps = 4, .y_limits = {0.0, 1.0}});
  EXPECT_EQ(axes.y.high, 1.0);
  EXPECT_DOUBLE_EQ(axes.y_ticks.front().value, axes.y.low);
  EXPECT_DOUBLE_EQ(axes.y_ticks.back().value, axes.y.high);
  figure.curves[0].y = {0, 0, 0};
  EXPECT_EQ(curves_axes(figure, {.y_limits = {0.0, 1.0}}).y.low, 0.0);
  figure.curves[0].y = {90, 1, 2};
  EXPECT_EQ(curves_axes(figure, {}).above, 1U);
  axes = curves_axes(figure, {.hold_everything = true, .y_limits = {0.0, 1.0}});
  EXPECT_EQ(axes.above, 0U) << "also of values that cannot be";
  EXPECT_GE(axes.y.high, 90.0);
}

TEST_F(CurvesFigureTest, SmoothedLinesStayInTheRangeOfTheirValues) {
  // A cliff: the straight line that fits its neighbours best would shoot below 0.
  Curve curve{"cliff", {}, {}};
  for (int i = 0; i < 100; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(i < 3 ? 30.0 : 0.0);
  }
  for (const CurvePoint& point : main_line(curve, stretches_of(curve)[0], {0.0, 30.0})) {
    EXPECT_GE(point.y, 0.0) << point.x;
    EXPECT_LE(point.y, 30.0) << point.x;
  }
}

}  // namespace
}  // namespace routing::curves_figure_test
