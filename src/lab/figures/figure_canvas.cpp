#include "lab/figures/figure_canvas.h"

#include "lab/figures/figure_font.h"
#include "routing/core/error.h"
#include "routing/core/files.h"

#include <cairo-svg.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>
#include <numbers>
#include <string_view>

namespace routing {
namespace {

// Cairo's own limit on the sides of an image.
constexpr double kMaxImagePixels = 32767.0;

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

cairo_status_t append_bytes(void* target, const unsigned char* data, unsigned int length) {
  auto& bytes = *static_cast<std::vector<char>*>(target);
  bytes.insert(bytes.end(), data, data + length);
  return CAIRO_STATUS_SUCCESS;
}

void require_success(cairo_status_t status) {
  require<Error>(status == CAIRO_STATUS_SUCCESS, "drawing the figure: cairo says '", cairo_status_to_string(status),
                 "'");
}

void draw_on(cairo_surface_t* surface, const std::function<void(cairo_t*)>& draw) {
  const Context context(cairo_create(surface), &cairo_destroy);
  set_colour(context.get(), kBackground);
  cairo_paint(context.get());
  draw(context.get());
  require_success(cairo_status(context.get()));
}

std::vector<char> render_png(const FigureSize& size, const std::function<void(cairo_t*)>& draw) {
  const auto pixels = [](double units) { return static_cast<int>(std::ceil(units * kPixelsPerUnit)); };
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, pixels(size.width), pixels(size.height)),
                        &cairo_surface_destroy);
  require_success(cairo_surface_status(surface.get()));
  cairo_surface_set_device_scale(surface.get(), kPixelsPerUnit, kPixelsPerUnit);
  draw_on(surface.get(), draw);
  std::vector<char> bytes;
  require_success(cairo_surface_write_to_png_stream(surface.get(), append_bytes, &bytes));
  return bytes;
}

std::string escaped_for_xml(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += letter;
    }
  }
  return escaped;
}

// Cairo writes letters as shapes, so nothing in its SVG says what the picture is about.
void insert_svg_title(std::vector<char>& bytes, const std::string& title) {
  constexpr std::string_view kRoot = "<svg";
  const auto root = std::search(bytes.begin(), bytes.end(), kRoot.begin(), kRoot.end());
  const auto root_end = std::find(root, bytes.end(), '>');
  require<Error>(root_end != bytes.end(), "drawing the figure: cairo wrote an SVG without its root element");
  const std::string element = "\n<title>" + escaped_for_xml(title) + "</title>";
  bytes.insert(root_end + 1, element.begin(), element.end());
}

std::vector<char> render_svg(const FigureSize& size, const std::function<void(cairo_t*)>& draw) {
  std::vector<char> bytes;
  {
    const Surface surface(cairo_svg_surface_create_for_stream(append_bytes, &bytes, size.width, size.height),
                          &cairo_surface_destroy);
    require_success(cairo_surface_status(surface.get()));
    cairo_svg_surface_set_document_unit(surface.get(), CAIRO_SVG_UNIT_PX);
    draw_on(surface.get(), draw);
    cairo_surface_finish(surface.get());
    require_success(cairo_surface_status(surface.get()));
  }
  insert_svg_title(bytes, size.title);
  return bytes;
}

void choose_font(cairo_t* context, const FontRun& run, const TextStyle& style) {
  if (run.face == nullptr) {
    cairo_select_font_face(context, kUsualFont, CAIRO_FONT_SLANT_NORMAL,
                           style.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  } else {
    cairo_set_font_face(context, run.face);
  }
  cairo_set_font_size(context, style.size);
}

}  // namespace

FigureFormat figure_format(const std::filesystem::path& path) {
  require<ConfigError>(!path.empty(), "the file of the figure has an empty name; give one that ends in .png or .svg");
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (extension == ".png") return FigureFormat::png;
  if (extension == ".svg") return FigureFormat::svg;
  throw ConfigError(path.string() + ": a figure's name ends in .png or .svg, not in '" + path.extension().string() +
                    "'; rename it, the ending decides the format");
}

Colour mix(const Colour& from, const Colour& to, double share) {
  const auto between = [&](double first, double second) { return first + (second - first) * share; };
  return {between(from.red, to.red), between(from.green, to.green), between(from.blue, to.blue)};
}

Colour group_colour(std::int32_t group) {
  require<InputError>(group >= 0, "group ", group, " has no colour; groups count from 0");
  // Blue and orange first: figures with few groups then keep the pair that every eye tells apart.
  constexpr auto kHues = std::to_array<Colour>({
      {0.16, 0.42, 0.69},  // blue
      {0.93, 0.55, 0.14},  // orange
      {0.09, 0.60, 0.47},  // teal
      {0.77, 0.23, 0.36},  // crimson
      {0.46, 0.73, 0.90},  // sky
      {0.51, 0.33, 0.64},  // violet
      {0.80, 0.72, 0.22},  // mustard
      {0.89, 0.50, 0.66},  // rose
  });
  constexpr std::size_t kNumTones = 3;
  const auto index = static_cast<std::size_t>(group);
  const Colour& hue = kHues[index % kHues.size()];
  switch (index / kHues.size() % kNumTones) {
    case 1:
      return mix(hue, {0.0, 0.0, 0.0}, 0.4);
    case 2:
      return mix(hue, kBackground, 0.45);
    default:
      return hue;
  }
}

void draw_text(cairo_t* context, const std::string& text, double x, double y, const TextStyle& style) {
  const double start = -style.align * text_width(context, text, style);
  cairo_save(context);
  set_colour(context, style.colour);
  cairo_translate(context, x, y);
  if (style.upwards) cairo_rotate(context, -std::acos(0.0));
  cairo_move_to(context, start, 0.0);
  for (const FontRun& run : font_runs(text, style.bold)) {
    choose_font(context, run, style);
    cairo_show_text(context, run.text.c_str());
  }
  // The point after the last letter, at which a line that is drawn next would begin.
  cairo_new_path(context);
  cairo_restore(context);
}

double text_width(cairo_t* context, const std::string& text, const TextStyle& style) {
  double width = 0.0;
  for (const FontRun& run : font_runs(text, style.bold)) {
    choose_font(context, run, style);
    cairo_text_extents_t extents;
    cairo_text_extents(context, run.text.c_str(), &extents);
    width += extents.x_advance;
  }
  return width;
}

double widest_text(std::span<const std::string> texts, const TextStyle& style) {
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1), &cairo_surface_destroy);
  const Context context(cairo_create(surface.get()), &cairo_destroy);
  double width = 0.0;
  for (const std::string& text : texts) width = std::max(width, text_width(context.get(), text, style));
  return width;
}

TextStyle shrunk_to_fit(cairo_t* context, const std::string& text, const TextStyle& style, double width) {
  TextStyle fitting = style;
  fitting.size *= std::min(1.0, width / std::max(1.0, text_width(context, text, style)));
  return fitting;
}

void set_colour(cairo_t* context, const Colour& colour) {
  cairo_set_source_rgb(context, colour.red, colour.green, colour.blue);
}

void stroke_line(cairo_t* context, const Point& from, const Point& to, const Colour& colour) {
  cairo_move_to(context, from.x, from.y);
  cairo_line_to(context, to.x, to.y);
  set_colour(context, colour);
  cairo_stroke(context);
}

void draw_dot(cairo_t* context, const Dot& dot, const Colour& colour) {
  cairo_new_path(context);
  cairo_arc(context, dot.x, dot.y, dot.radius, 0.0, 2.0 * std::numbers::pi);
  set_colour(context, colour);
  cairo_fill(context);
}

std::vector<char> render_figure(const FigureSize& size, FigureFormat format,
                                const std::function<void(cairo_t*)>& draw) {
  require<InputError>(std::max(size.width, size.height) * kPixelsPerUnit <= kMaxImagePixels, "the figure would be ",
                      size.width, " x ", size.height, " units, but an image holds at most ",
                      std::floor(kMaxImagePixels / kPixelsPerUnit), " a side; draw fewer panels or shorter sequences");
  return format == FigureFormat::png ? render_png(size, draw) : render_svg(size, draw);
}

void write_figure(const std::filesystem::path& path, FigureFormat format, const FigureSize& size,
                  const std::function<void(cairo_t*)>& draw) {
  const std::vector<char> bytes = render_figure(size, format, draw);
  write_file_at_once(path, std::as_bytes(std::span(bytes)));
}

}  // namespace routing
