#include "lab/figures/completion_sheet.h"

#include "lab/figures/figure_canvas.h"
#include "routing/core/error.h"
#include "routing/data/images/png_image.h"
#include "routing/generation/image_sheet.h"
#include "routing/generation/image_tokens.h"

#include <algorithm>
#include <memory>

namespace routing {
namespace {

constexpr double kRoom = 10.0;               // between captions
constexpr std::int64_t kReadableWidth = 96;  // pixels of a column under its caption
const TextStyle kCaption = {.size = 19.0, .colour = kFaintInk, .align = 0.5};

struct Sheet {
  Image image = {};
  SheetOptions options = {};
  std::size_t images = 0;
};

Sheet sheet_that_fits(std::vector<Image> images, SheetOptions options) {
  const auto group = static_cast<std::size_t>(options.group);
  while (images.size() > group || options.magnification > 1) {
    try {
      return {contact_sheet(images, options), options, images.size()};
    } catch (const InputError&) {
      if (options.magnification > 1) {
        options.magnification /= 2;
      } else {
        images.resize((images.size() / group + 1) / 2 * group);
      }
    }
  }
  return {contact_sheet(images, options), options, images.size()};
}

std::string caption_of(std::int64_t member, std::size_t each) {
  if (member == 0) return "original";
  if (member == 1) return "given";
  return each == 1 ? "completion" : "completion " + std::to_string(member - 1);
}

}  // namespace

Image completion_sheet(const std::vector<Image>& originals, const std::vector<Image>& made, std::size_t each) {
  if (originals.empty()) return sheet_that_fits(made, {}).image;
  std::vector<Image> all;
  for (std::size_t i = 0; (i + 1) * each <= made.size(); ++i) {
    all.push_back(originals[i]);
    all.push_back(image_from_tokens(upper_half_tokens(originals[i]), originals[i].shape));
    for (std::size_t k = 0; k < each; ++k) all.push_back(made[i * each + k]);
  }
  const ImageShape shape = originals.front().shape;
  SheetOptions options{.group = static_cast<std::int64_t>(2 + each)};
  // A caption cannot be read over a column that is narrower.
  while (options.magnification * shape.width < kReadableWidth) options.magnification *= 2;
  const Sheet sheet = sheet_that_fits(std::move(all), options);
  const std::vector<std::int64_t> lefts = sheet_columns(static_cast<std::int64_t>(sheet.images), shape, sheet.options);
  std::vector<ColumnCaption> captions;
  for (std::size_t column = 0; column < lefts.size(); ++column) {
    captions.push_back({.left = lefts[column],
                        .width = sheet.options.magnification * shape.width,
                        .text = caption_of(static_cast<std::int64_t>(column) % sheet.options.group, each)});
  }
  // A sheet that just fits a file has no room for more.
  const bool fits = sheet.image.shape.height + kCaptionHeight <= kLargestPngSide;
  return fits ? with_captions(sheet.image, captions) : sheet.image;
}

Image with_captions(const Image& sheet, std::span<const ColumnCaption> captions) {
  const auto width = static_cast<int>(sheet.shape.width);
  const std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, kCaptionHeight), &cairo_surface_destroy);
  const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> context(cairo_create(surface.get()), &cairo_destroy);
  set_colour(context.get(), kBackground);
  cairo_paint(context.get());
  for (const ColumnCaption& caption : captions) {
    const double middle = static_cast<double>(caption.left) + 0.5 * static_cast<double>(caption.width);
    draw_text(context.get(), caption.text, middle, static_cast<double>(kCaptionHeight) - 6.0,
              shrunk_to_fit(context.get(), caption.text, kCaption, static_cast<double>(caption.width) - kRoom));
  }
  require<Error>(cairo_status(context.get()) == CAIRO_STATUS_SUCCESS, "captions of a sheet ", width,
                 " pixels wide: cairo says '", cairo_status_to_string(cairo_status(context.get())), "'");
  cairo_surface_flush(surface.get());
  Image result{.shape = {.height = sheet.shape.height + kCaptionHeight, .width = sheet.shape.width}, .values = {}};
  result.values.reserve(static_cast<std::size_t>(result.shape.values()));
  const unsigned char* rows = cairo_image_surface_get_data(surface.get());
  for (std::int64_t row = 0; row < kCaptionHeight; ++row, rows += cairo_image_surface_get_stride(surface.get())) {
    const auto* pixels = reinterpret_cast<const std::uint32_t*>(rows);
    for (int column = 0; column < width; ++column) {
      for (const unsigned shift : {16U, 8U, 0U}) {
        result.values.push_back(static_cast<std::uint8_t>(pixels[column] >> shift & 0xffU));
      }
    }
  }
  result.values.insert(result.values.end(), sheet.values.begin(), sheet.values.end());
  return result;
}

}  // namespace routing
