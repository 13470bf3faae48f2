// Reads back what a figure drew.
#pragma once

#include "lab/figures/figure_canvas.h"

#include <cairo.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace routing {

inline bool same_colour(const Colour& first, const Colour& second) {
  const double step = 1.01 / 255.0;
  return std::abs(first.red - second.red) < step && std::abs(first.green - second.green) < step &&
         std::abs(first.blue - second.blue) < step;
}

class FigureImage {
 public:
  explicit FigureImage(const std::filesystem::path& path)
      : surface_(cairo_image_surface_create_from_png(path.c_str()), &cairo_surface_destroy) {}

  bool readable() const { return cairo_surface_status(surface_.get()) == CAIRO_STATUS_SUCCESS; }
  int width() const { return cairo_image_surface_get_width(surface_.get()); }
  int height() const { return cairo_image_surface_get_height(surface_.get()); }

  // At a point of the drawing.
  Colour at(double x, double y) const {
    const auto column = static_cast<int>(x * kPixelsPerUnit);
    const auto row = static_cast<int>(y * kPixelsPerUnit);
    const unsigned char* data = cairo_image_surface_get_data(surface_.get());
    const auto* line =
        reinterpret_cast<const std::uint32_t*>(data + row * cairo_image_surface_get_stride(surface_.get()));
    const auto channel = [&](unsigned shift) { return static_cast<double>((line[column] >> shift) & 0xffU) / 255.0; };
    return {channel(16), channel(8), channel(0)};
  }

  // Whether any pixel of the rectangle has the colour.
  bool holds(const Colour& colour, double left, double top, double right, double bottom) const {
    const double pixel = 1.0 / kPixelsPerUnit;
    for (double y = top; y < bottom; y += pixel) {
      for (double x = left; x < right; x += pixel) {
        if (same_colour(at(x, y), colour)) return true;
      }
    }
    return false;
  }

 private:
  std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface_;
};

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace routing
