#include "support/amx/amx_tiles.h"

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <xmmintrin.h>

namespace routing::support {
namespace {

// Runs inside a signal handler: no streams, no allocation.
[[noreturn, gnu::format(printf, 1, 2)]] void refuse(const char* format, ...) {
  std::array<char, 256> line{};
  std::va_list values;
  va_start(values, format);
  const int length = std::vsnprintf(line.data(), line.size(), format, values);
  va_end(values);
  const auto shown = std::min(static_cast<std::size_t>(std::max(length, 0)), line.size() - 2);
  line[shown] = '\n';
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), shown + 1);
  std::abort();
}

template <typename Values>
bool all_zero(const Values& values) {
  return std::all_of(values.begin(), values.end(), [](auto value) { return value == 0; });
}

// The control word of the arithmetic: no exceptions, nearest even, subnormal numbers are zero and become zero.
class FlushSubnormals {
 public:
  FlushSubnormals() { _mm_setcsr(0x9FC0); }
  ~FlushSubnormals() { _mm_setcsr(before_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned before_ = _mm_getcsr();
};

float low_half(std::uint32_t pair) {
  return std::bit_cast<float>(pair << 16U);
}

float high_half(std::uint32_t pair) {
  return std::bit_cast<float>(pair & 0xFFFF0000U);
}

}  // namespace

void AmxTiles::load_config(const void* memory) {
  TileConfig config;
  std::memcpy(&config, memory, sizeof(config));
  if (config.palette == 0) {
    release();
    return;
  }
  if (config.palette != 1) refuse("ldtilecfg: #GP, palette %d; only 0 and 1 exist", config.palette);
  if (!all_zero(config.reserved) || !all_zero(config.more_reserved) || !all_zero(config.last_reserved)) {
    refuse("ldtilecfg: #GP, a reserved byte is not zero");
  }
  for (std::size_t tile = 0; tile < kTiles; ++tile) {
    const int rows = config.rows[tile];
    const int bytes = config.bytes[tile];
    if (rows > kRows || bytes > 4 * kWords) {
      refuse("ldtilecfg: #GP, tile %zu has %d rows of %d bytes; at most 16 of 64", tile, rows, bytes);
    }
    if ((rows == 0) != (bytes == 0)) {
      refuse("ldtilecfg: #GP, tile %zu has %d rows of %d bytes; both or neither must be zero", tile, rows, bytes);
    }
  }
  config_ = config;
  tiles_ = {};
}

void AmxTiles::store_config(void* memory) const {
  std::memcpy(memory, &config_, sizeof(config_));
}

void AmxTiles::release() {
  config_ = {.palette = 0};
  tiles_ = {};
}

AmxTiles::Shape AmxTiles::shape_of(const char* instruction, int tile) const {
  if (config_.palette == 0) refuse("%s: #UD, tiles are not configured", instruction);
  const int rows = config_.rows[static_cast<std::size_t>(tile)];
  const int bytes = config_.bytes[static_cast<std::size_t>(tile)];
  if (rows == 0) refuse("%s: #UD, tile %d has no rows in this configuration", instruction, tile);
  if (bytes % 4 != 0) refuse("%s: #UD, tile %d has %d bytes per row, no multiple of 4", instruction, tile, bytes);
  return {.rows = rows, .words = bytes / 4};
}

void AmxTiles::check_start_row(const char* instruction, int tile, int rows) const {
  if (config_.start_row >= rows) {
    refuse("%s: #UD, start row %d, but tile %d has %d rows", instruction, config_.start_row, tile, rows);
  }
}

void AmxTiles::load(int tile, const void* memory, std::int64_t row_distance) {
  const Shape shape = shape_of("tileloadd", tile);
  check_start_row("tileloadd", tile, shape.rows);
  Tile& target = tiles_[static_cast<std::size_t>(tile)];
  if (config_.start_row == 0) target = {};
  const auto* bytes = static_cast<const std::uint8_t*>(memory);
  for (int row = config_.start_row; row < shape.rows; ++row) {
    auto& words = target[static_cast<std::size_t>(row)];
    words = {};
    std::memcpy(words.data(), bytes + row * row_distance, 4 * static_cast<std::size_t>(shape.words));
  }
  config_.start_row = 0;
}

void AmxTiles::store(int tile, void* memory, std::int64_t row_distance) {
  const Shape shape = shape_of("tilestored", tile);
  check_start_row("tilestored", tile, shape.rows);
  const Tile& source = tiles_[static_cast<std::size_t>(tile)];
  auto* bytes = static_cast<std::uint8_t*>(memory);
  for (int row = config_.start_row; row < shape.rows; ++row) {
    std::memcpy(bytes + row * row_distance, source[static_cast<std::size_t>(row)].data(),
                4 * static_cast<std::size_t>(shape.words));
  }
  config_.start_row = 0;
}

void AmxTiles::zero(int tile) {
  if (config_.palette == 0) refuse("tilezero: #UD, tiles are not configured");
  if (config_.rows[static_cast<std::size_t>(tile)] == 0) {
    refuse("tilezero: #UD, tile %d has no rows in this configuration", tile);
  }
  tiles_[static_cast<std::size_t>(tile)] = {};
  config_.start_row = 0;
}

void AmxTiles::multiply_bf16(int tile, int left, int right) {
  if (tile == left || tile == right || left == right) {
    refuse("tdpbf16ps: #UD, tiles %d, %d and %d are not three tiles", tile, left, right);
  }
  const Shape of_sums = shape_of("tdpbf16ps", tile);
  const Shape of_left = shape_of("tdpbf16ps", left);
  const Shape of_right = shape_of("tdpbf16ps", right);
  if (of_sums.rows != of_left.rows || of_left.words != of_right.rows || of_right.words != of_sums.words) {
    refuse("tdpbf16ps: #UD, %d x %d words += %d x %d words * %d x %d words", of_sums.rows, of_sums.words, of_left.rows,
           of_left.words, of_right.rows, of_right.words);
  }
  Tile& sums = tiles_[static_cast<std::size_t>(tile)];
  {
    const FlushSubnormals mode;
    accumulate(tiles_[static_cast<std::size_t>(left)], tiles_[static_cast<std::size_t>(right)], of_left, sums);
  }
  // All sixteen columns were computed; the ones that the tile does not have are zero by definition.
  for (int row = 0; row < of_sums.rows; ++row) {
    auto& words = sums[static_cast<std::size_t>(row)];
    std::fill(words.begin() + of_sums.words, words.end(), 0U);
  }
  config_.start_row = 0;
}

// In double precision a product of two bfloat16 is exact, and rounding its sum with a float32 first to 53 bits and then
// to 24 is the same as rounding once: 53 >= 2 * 24 + 2. So this is a fused multiply-add on every processor. A function
// of its own, so that no arithmetic moves out of the control word's reach.
[[gnu::noinline]] void AmxTiles::accumulate(const Tile& left, const Tile& right, Shape of_left, Tile& sums) {
  std::array<std::array<double, kWords>, kRows> even_right;
  std::array<std::array<double, kWords>, kRows> odd_right;
  const auto rows = static_cast<std::size_t>(of_left.rows);
  const auto pairs = static_cast<std::size_t>(of_left.words);
  for (std::size_t k = 0; k < pairs; ++k) {
    for (std::size_t n = 0; n < kWords; ++n) {
      even_right[k][n] = low_half(right[k][n]);
      odd_right[k][n] = high_half(right[k][n]);
    }
  }
  for (std::size_t m = 0; m < rows; ++m) {
    std::array<float, kWords> even{};
    std::array<float, kWords> odd{};
    for (std::size_t k = 0; k < pairs; ++k) {
      const double even_left = low_half(left[m][k]);
      const double odd_left = high_half(left[m][k]);
      for (std::size_t n = 0; n < kWords; ++n) {
        even[n] = static_cast<float>(even_left * even_right[k][n] + even[n]);
        odd[n] = static_cast<float>(odd_left * odd_right[k][n] + odd[n]);
      }
    }
    for (std::size_t n = 0; n < kWords; ++n) {
      const float sum = std::bit_cast<float>(sums[m][n]) + (even[n] + odd[n]);
      sums[m][n] = std::bit_cast<std::uint32_t>(sum);
    }
  }
}

}  // namespace routing::support
