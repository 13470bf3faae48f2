// A sheet to draw on: the same calls make a PNG or an SVG.
#pragma once

#include <cairo.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace routing {

enum class FigureFormat { png, svg };

// By the extension of the path, .png or .svg in any case; a ConfigError names the two otherwise.
FigureFormat figure_format(const std::filesystem::path& path);

// Each channel from 0 to 1.
struct Colour {
  double red = 0.0;
  double green = 0.0;
  double blue = 0.0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

// The way from one colour to another: share 0 is `from`, share 1 is `to`.
Colour mix(const Colour& from, const Colour& to, double share);

// For marking groups: distinct also for most colour-blind eyes. After the last hue the same hues come again, darker,
// then lighter; only after all of these does a colour repeat. group >= 0.
Colour group_colour(std::int32_t group);

inline constexpr Colour kBackground = {1.0, 1.0, 1.0};
inline constexpr Colour kInk = {0.13, 0.13, 0.13};
inline constexpr Colour kFaintInk = {0.40, 0.40, 0.40};
inline constexpr Colour kGrid = {0.91, 0.91, 0.91};
inline constexpr Colour kAxis = {0.45, 0.45, 0.45};

// Pixels of a PNG for each unit of the drawing; two keep letters sharp on dense screens and in print.
inline constexpr int kPixelsPerUnit = 2;

struct TextStyle {
  double size = 11.0;  // height of the font in units
  bool bold = false;
  Colour colour = kInk;
  double align = 0.0;  // 0 starts at the point, 0.5 is centred on it, 1 ends there
  bool upwards = false;
};
inline constexpr TextStyle kTitle = {.size = 17.0, .bold = true};
inline constexpr double kHalfCapital = 4.0;  // of ordinary labels: what puts them level with a mark

// (x, y) is on the baseline. Letters that the usual font lacks are drawn in another one (figure_font.h).
void draw_text(cairo_t* context, const std::string& text, double x, double y, const TextStyle& style);
double text_width(cairo_t* context, const std::string& text, const TextStyle& style);
// Of the widest one, for layouts, where there is no sheet yet; 0 of none.
double widest_text(std::span<const std::string> texts, const TextStyle& style);

// The style itself, or with a font just small enough for the text to be no wider than `width`.
TextStyle shrunk_to_fit(cairo_t* context, const std::string& text, const TextStyle& style, double width);

void set_colour(cairo_t* context, const Colour& colour);

struct Point {
  double x = 0.0;
  double y = 0.0;
  friend bool operator==(const Point&, const Point&) = default;
};
// With the line width and the dashes that the context has.
void stroke_line(cairo_t* context, const Point& from, const Point& to, const Colour& colour);

struct Dot {
  double x = 0.0;
  double y = 0.0;
  double radius = 1.0;
};
void draw_dot(cairo_t* context, const Dot& dot, const Colour& colour);

struct FigureSize {
  double width = 0.0;  // in units
  double height = 0.0;
  std::string title;  // kept in the SVG for search engines and screen readers
};

// The bytes of the file: a white sheet of this size with what `draw` puts on it. An InputError refuses sheets larger
// than an image can be.
std::vector<char> render_figure(const FigureSize& size, FigureFormat format, const std::function<void(cairo_t*)>& draw);
// The same as a file, written at once.
void write_figure(const std::filesystem::path& path, FigureFormat format, const FigureSize& size,
                  const std::function<void(cairo_t*)>& draw);

// Lays a figure out and writes what Drawing(figure, layout, context).draw() makes of it. Nothing is laid out for a path
// of no known format.
template <class Drawing, class Figure, class Layout>
void write_figure(const std::filesystem::path& path, const Figure& figure, Layout (*lay_out)(const Figure&),
                  const std::string& title) {
  const FigureFormat format = figure_format(path);
  const Layout layout = lay_out(figure);
  write_figure(path, format, {layout.width, layout.height, title},
               [&](cairo_t* context) { Drawing(figure, layout, context).draw(); });
}

}  // namespace routing
