// The tile registers of AMX in software: what each instruction does to them.
//
// Follows the operation sections of Intel's manual. Where a processor would raise an exception, the process prints a
// line that names the instruction, the exception and the values, and aborts.
#pragma once

#include <array>
#include <cstdint>

namespace routing::support {

// What LDTILECFG reads. Rows and bytes per row of each tile, at most 16 and 64; both zero for tiles that stay unused.
struct TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 8> bytes{};
  std::array<std::uint16_t, 8> more_reserved{};
  std::array<std::uint8_t, 8> rows{};
  std::array<std::uint8_t, 8> last_reserved{};
};
static_assert(sizeof(TileConfig) == 64);

class AmxTiles {
 public:
  static constexpr int kTiles = 8;
  static constexpr int kRows = 16;
  static constexpr int kWords = 16;  // of 32 bits, in a row

  void load_config(const void* memory);
  void store_config(void* memory) const;
  void release();
  void load(int tile, const void* memory, std::int64_t row_distance);
  void store(int tile, void* memory, std::int64_t row_distance);
  void zero(int tile);
  // tile[m][n] += even + odd, where
  //   even = sum over k of left[m][2k]     * right[k][2n]
  //   odd  = sum over k of left[m][2k + 1] * right[k][2n + 1]
  // with bfloat16 on the right sides. Both sums start at zero and take k in order; every multiply-add and every
  // addition is rounded once to a float32, nearest even. Subnormal numbers count as zero and become zero.
  void multiply_bf16(int tile, int left, int right);

 private:
  using Tile = std::array<std::array<std::uint32_t, kWords>, kRows>;

  // Rows and 32-bit words per row.
  struct Shape {
    int rows = 0;
    int words = 0;
  };
  Shape shape_of(const char* instruction, int tile) const;
  void check_start_row(const char* instruction, int tile, int rows) const;
  static void accumulate(const Tile& left, const Tile& right, Shape of_left, Tile& sums);

  TileConfig config_{.palette = 0};
  alignas(64) std::array<Tile, kTiles> tiles_{};
};

}  // namespace routing::support
