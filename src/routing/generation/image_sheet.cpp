#include "routing/generation/image_sheet.h"

#include "routing/core/error.h"
#include "routing/data/images/png_image.h"

#include <algorithm>
#include <limits>

namespace routing {
namespace {

void require_range(const char* name, std::int64_t value, std::int64_t lowest, std::int64_t highest) {
  require<ConfigError>(lowest <= value && value <= highest, "sheet of images: ", name, " is ", value, ", but ", lowest,
                       " to ", highest, " are possible; choose one of these");
}

void require_options(const SheetOptions& options) {
  require_range("group", options.group, 1, 1024);
  require_range("columns", options.columns, 0, kLargestPngSide);
  require_range("magnification", options.magnification, 1, 256);
  require_range("margin", options.margin, 0, 1024);
  require_range("gap", options.gap, 0, 1024);
}

void require_alike(std::span<const Image> images, std::int64_t group) {
  require<InputError>(!images.empty(), "there are no images to put on a sheet; give at least one");
  const ImageShape& shape = images.front().shape;
  for (std::size_t place = 0; place < images.size(); ++place) {
    const Image& image = images[place];
    require<InputError>(image.shape == shape, "image ", place + 1, " of ", images.size(), " has ",
                        to_string(image.shape), " pixels, but the first one has ", to_string(shape),
                        "; a sheet needs images of one size");
    require<InputError>(static_cast<std::int64_t>(image.values.size()) == shape.values(), "image ", place + 1, " of ",
                        images.size(), " has ", image.values.size(), " values, but ", to_string(shape), " pixels have ",
                        shape.values(), "; give red, green and blue of every pixel");
  }
  require<InputError>(static_cast<std::int64_t>(images.size()) % group == 0, images.size(),
                      " images cannot be put together in groups of ", group, "; give a multiple of it");
}

struct Layout {
  std::int64_t columns = 0;  // of groups
  ImageShape sheet;
};

Layout layout_of(std::int64_t groups, std::int64_t columns, const ImageShape& shape, const SheetOptions& options) {
  const std::int64_t rows = (groups + columns - 1) / columns;
  const std::int64_t group_width =
      options.group * options.magnification * shape.width + (options.group - 1) * options.gap;
  return {.columns = columns,
          .sheet = {.height = rows * options.magnification * shape.height + (rows + 1) * options.margin,
                    .width = columns * group_width + (columns + 1) * options.margin}};
}

Layout choose_layout(std::int64_t groups, const ImageShape& shape, const SheetOptions& options) {
  if (options.columns > 0) return layout_of(groups, std::min(options.columns, groups), shape, options);
  Layout best;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t columns = 1; columns <= groups; ++columns) {
    const Layout layout = layout_of(groups, columns, shape, options);
    const std::int64_t longer_side = std::max(layout.sheet.height, layout.sheet.width);
    if (longer_side > shortest) continue;
    shortest = longer_side;
    best = layout;
  }
  return best;
}

// Of image `member` of the group in column `column`.
std::int64_t left_of(std::int64_t column, std::int64_t member, const ImageShape& shape, const SheetOptions& options) {
  const std::int64_t tile_width = options.magnification * shape.width;
  const std::int64_t group_width = options.group * tile_width + (options.group - 1) * options.gap;
  return options.margin + column * (group_width + options.margin) + member * (tile_width + options.gap);
}

// Nearest neighbour: every pixel of the square is the one it came from.
void draw_magnified(const Image& image, std::int64_t magnification, std::int64_t top, std::int64_t left, Image& sheet) {
  for (std::int64_t row = 0; row < image.shape.height * magnification; ++row) {
    for (std::int64_t column = 0; column < image.shape.width * magnification; ++column) {
      const std::int64_t from = 3 * (row / magnification * image.shape.width + column / magnification);
      const std::int64_t to = 3 * ((top + row) * sheet.shape.width + left + column);
      std::copy_n(image.values.begin() + from, 3, sheet.values.begin() + to);
    }
  }
}

}  // namespace

Image contact_sheet(std::span<const Image> images, const SheetOptions& options) {
  require_options(options);
  require_alike(images, options.group);
  const ImageShape& shape = images.front().shape;
  require<InputError>(
      std::min(shape.height, shape.width) >= 1 && std::max(shape.height, shape.width) <= kLargestPngSide, "images of ",
      to_string(shape), " pixels cannot be put on a sheet; 1 to ", kLargestPngSide, " rows and columns are possible");
  const Layout layout = choose_layout(static_cast<std::int64_t>(images.size()) / options.group, shape, options);
  require<InputError>(std::max(layout.sheet.height, layout.sheet.width) <= kLargestPngSide, "the sheet of ",
                      images.size(), " images would have ", to_string(layout.sheet), " pixels, but ", kLargestPngSide,
                      " rows and columns are the most; lower the magnification (", options.magnification,
                      ") or make several sheets");
  Image sheet{.shape = layout.sheet, .values = {}};
  sheet.values.reserve(static_cast<std::size_t>(sheet.shape.values()));
  for (std::int64_t pixel = 0; pixel < sheet.shape.height * sheet.shape.width; ++pixel) {
    sheet.values.insert(sheet.values.end(), options.background.begin(), options.background.end());
  }
  const std::int64_t tile_height = options.magnification * shape.height;
  for (std::int64_t place = 0; place < static_cast<std::int64_t>(images.size()); ++place) {
    const std::int64_t group = place / options.group;
    const std::int64_t member = place % options.group;
    const std::int64_t top = options.margin + group / layout.columns * (tile_height + options.margin);
    const std::int64_t left = left_of(group % layout.columns, member, shape, options);
    draw_magnified(images[static_cast<std::size_t>(place)], options.magnification, top, left, sheet);
  }
  return sheet;
}

std::vector<std::int64_t> sheet_columns(std::int64_t images, const ImageShape& shape, const SheetOptions& options) {
  require_options(options);
  require<InputError>(images > 0 && images % options.group == 0, images, " images cannot be put together in groups of ",
                      options.group, "; give a multiple of it, above 0");
  std::vector<std::int64_t> lefts;
  for (std::int64_t column = 0; column < choose_layout(images / options.group, shape, options).columns; ++column) {
    for (std::int64_t member = 0; member < options.group; ++member) {
      lefts.push_back(left_of(column, member, shape, options));
    }
  }
  return lefts;
}

}  // namespace routing
