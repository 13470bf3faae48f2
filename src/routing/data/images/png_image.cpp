#include "routing/data/images/png_image.h"

#include "routing/core/error.h"
#include "routing/core/files.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <new>
#include <png.h>
#include <span>
#include <string>

namespace routing {
namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr int kMostBits = 8;
constexpr std::uint8_t kOpaque = 255;
// Deflate makes at most 1032 bytes of one.
constexpr std::uint64_t kLargestRatio = 1032;

// libpng reports an error through a function that must not return. It leaves by longjmp, so between setjmp and the
// calls of libpng there must be nothing with a destructor; all such things live in the objects below.
struct Complaint {
  std::array<char, 256> text{};  // ends with a zero
};

[[noreturn]] void keep_complaint(png_structp png, png_const_charp text) {
  auto* const complaint = static_cast<Complaint*>(png_get_error_ptr(png));
  std::strncpy(complaint->text.data(), text, complaint->text.size() - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

class PngReader {
 public:
  // Both must outlive the reader.
  PngReader(std::span<const std::byte> file, const std::string& origin) : origin_(origin), file_(file) {
    require<FileError>(!file.empty(), origin, ": has 0 bytes, but a PNG image was expected; make it again");
    require<FileError>(file.size() >= kSignatureBytes && png_sig_cmp(bytes(), 0, kSignatureBytes) == 0, origin,
                       ": is no PNG image; name PNG files only, or convert it with: convert IMAGE IMAGE.png");
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &complaint_, keep_complaint, ignore_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw std::bad_alloc();
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  ImageShape read_shape() {
    if (!parse_header()) throw_damaged();
    const auto height = static_cast<std::uint64_t>(png_get_image_height(png_, info_));
    const auto width = static_cast<std::uint64_t>(png_get_image_width(png_, info_));
    const int bits = png_get_bit_depth(png_, info_);
    require<FileError>(bits <= kMostBits, origin_, ": has ", bits,
                       " bits per channel, but 8 are expected; convert it with: convert IMAGE -depth 8 IMAGE.png");
    require<FileError>(std::max(height, width) <= kLargestPngSide, origin_, ": claims ", height, " x ", width,
                       " pixels, but at most ", kLargestPngSide, " x ", kLargestPngSide,
                       " are read; it is damaged, or shrink it");
    const std::uint64_t claimed = height * (1 + png_get_rowbytes(png_, info_));
    require<FileError>(claimed <= kLargestRatio * file_.size(), origin_, ": claims ", height, " x ", width,
                       " pixels, but its ", file_.size(), " bytes cannot hold them; it is damaged, make it again");
    return {.height = static_cast<std::int64_t>(height), .width = static_cast<std::int64_t>(width)};
  }

  Image read() {
    const ImageShape shape = read_shape();
    if (!ask_for_colours()) throw_damaged();
    const std::size_t channels = png_get_channels(png_, info_);
    const auto height = static_cast<std::size_t>(shape.height);
    pixels_.resize(height * static_cast<std::size_t>(shape.width) * channels);
    rows_.resize(height);
    for (std::size_t row = 0; row < height; ++row) rows_[row] = pixels_.data() + row * (pixels_.size() / height);
    if (!read_rows()) throw_damaged();
    if (channels == 4) drop_alpha(static_cast<std::size_t>(shape.width));
    return {.shape = shape, .values = std::move(pixels_)};
  }

 private:
  const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(file_.data()); }

  // The next three return false if libpng complained.
  bool parse_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, take_bytes);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    // Texts and colour profiles can be compressed and large; nobody needs them here. -1 means all but what pixels need.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    // Larger images get our own message.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(png_, info_);
    return true;
  }

  bool ask_for_colours() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_gray_to_rgb(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows_.data());  // all passes of an interlaced image
    png_read_end(png_, nullptr);
    return true;
  }

  static void take_bytes(png_structp png, png_bytep target, png_size_t count) {
    auto* const self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > self->file_.size() - self->position_) {
      self->ended_ = true;
      png_error(png, "too short");
    }
    std::memcpy(target, self->bytes() + self->position_, count);
    self->position_ += count;
  }

  [[noreturn]] void throw_damaged() const {
    const std::string what = ended_ ? "it ends after " + std::to_string(file_.size()) + " bytes, in the middle"
                                    : complaint_.text.data() + std::string(" near byte ") + std::to_string(position_);
    throw FileError(origin_ + ": is a damaged PNG image: " + what + "; fetch or make it again");
  }

  void drop_alpha(std::size_t width) {
    const std::size_t pixels = pixels_.size() / 4;
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const std::uint8_t alpha = pixels_[4 * pixel + 3];
      require<FileError>(alpha == kOpaque, origin_, ": has alpha ", static_cast<int>(alpha), " at row ", pixel / width,
                         ", column ", pixel % width,
                         ", but only opaque pixels (255) are read; put it on a background with: "
                         "convert IMAGE -background white -flatten IMAGE.png");
      std::memmove(&pixels_[3 * pixel], &pixels_[4 * pixel], 3);
    }
    pixels_.resize(3 * pixels);
  }

  const std::string& origin_;  // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members): lives for one call
  std::span<const std::byte> file_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  Complaint complaint_;
  std::size_t position_ = 0;
  bool ended_ = false;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t*> rows_;
};

class PngWriter {
 public:
  PngWriter() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &complaint_, keep_complaint, ignore_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_write_struct(&png_, &info_);
      throw std::bad_alloc();
    }
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  const std::vector<std::uint8_t>& encode(const Image& image) {
    const bool done = write_all(image);
    require<Error>(done, "an image of ", to_string(image.shape),
                   " pixels cannot be made a PNG: ", complaint_.text.data());
    return output_;
  }

 private:
  bool write_all(const Image& image) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_write_fn(png_, this, append_bytes, nullptr);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(image.shape.width), static_cast<png_uint_32>(image.shape.height),
                 kMostBits, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    const auto row_bytes = static_cast<std::size_t>(3 * image.shape.width);
    for (std::int64_t row = 0; row < image.shape.height; ++row) {
      png_write_row(png_, image.values.data() + static_cast<std::size_t>(row) * row_bytes);
    }
    png_write_end(png_, nullptr);
    return true;
  }

  static void append_bytes(png_structp png, png_bytep source, png_size_t count) {
    auto* const self = static_cast<PngWriter*>(png_get_io_ptr(png));
    bool full = false;
    // No exception may pass through libpng, nor may png_error leave a handler.
    try {
      self->output_.insert(self->output_.end(), source, source + count);
    } catch (const std::bad_alloc&) {
      full = true;
    }
    if (full) png_error(png, "no memory; free some");
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  Complaint complaint_;
  std::vector<std::uint8_t> output_;
};

}  // namespace

Image read_png(const std::filesystem::path& path) {
  const MappedFile file(path);
  return decode_png(file.bytes(), path.string());
}

Image decode_png(std::span<const std::byte> file, const std::string& origin) {
  return PngReader(file, origin).read();
}

ImageShape read_png_shape(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string origin = path.string();
  return PngReader(file.bytes(), origin).read_shape();
}

std::vector<std::uint8_t> encode_png(const Image& image, const std::string& origin) {
  const ImageShape& shape = image.shape;
  require<InputError>(
      std::min(shape.height, shape.width) >= 1 && std::max(shape.height, shape.width) <= kLargestPngSide, origin,
      ": an image of ", to_string(shape), " pixels was given, but 1 to ", kLargestPngSide,
      " rows and columns can be written");
  require<InputError>(static_cast<std::int64_t>(image.values.size()) == shape.values(), origin, ": ",
                      image.values.size(), " values were given, but ", to_string(shape), " pixels have ",
                      shape.values(), "; give red, green and blue of every pixel");
  return PngWriter().encode(image);
}

void write_png(const std::filesystem::path& path, const Image& image) {
  const std::vector<std::uint8_t> bytes = encode_png(image, path.string());
  write_file_at_once(path, std::as_bytes(std::span(bytes)));
}

}  // namespace routing
