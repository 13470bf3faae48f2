// Small kernels of real tile instructions. amx_tile_kernels.cpp is compiled once for each optimisation level, because
// the level decides which registers and addresses the instructions use.
#pragma once

#include "support/amx/amx_tiles.h"

#include <cstdint>

namespace routing::support {

// C += A * B. A is [rows, depth]; B [depth / 2, columns, 2] holds pairs of consecutive rows; C is float32.
struct TileProduct {
  const TileConfig* config = nullptr;
  const std::uint16_t* a = nullptr;
  const std::uint16_t* b = nullptr;
  float* c = nullptr;
  std::int64_t depth = 32;       // a multiple of 32 for product_2x2
  std::int64_t a_distance = 64;  // of rows, in bytes
  std::int64_t b_distance = 64;
  std::int64_t c_distance = 64;
};

inline constexpr int kNumAddressForms = 9;

struct TileKernels {
  const char* name = "";
  bool needs_avx512 = false;
  // Tiles 0 += 1 * 2, rows and columns as in the configuration.
  void (*product)(const TileProduct&) = nullptr;
  // Up to 32 x 32 results in tiles 0 to 3, with 4, 5 and 6, 7 as factors.
  void (*product_2x2)(const TileProduct&) = nullptr;
  // Loads all eight tiles from a, zeroes tile 5, stores them one after the other to c. 16 rows of 64 bytes each.
  void (*copy_all)(const TileProduct&) = nullptr;
  // Loads 16 rows of 64 bytes, 128 bytes apart, from a + 4096 bytes in kNumAddressForms forms, and stores each form's
  // tile to c, 1024 bytes further each time. In the last form all rows are the first one.
  void (*address_forms)(const TileProduct&) = nullptr;
  // Configurations reached in other ways: a constant of the file, an address in a segment. Two tiles to c.
  void (*config_forms)(const TileProduct&) = nullptr;
  // The configuration in force after it was loaded.
  void (*store_config)(const TileConfig* in, TileConfig* out) = nullptr;
  // The sum of 32 floats at c, kept in vector registers while tiles come and go.
  float (*sum_across_tiles)(const TileProduct&) = nullptr;
};

TileKernels tile_kernels_o0();
TileKernels tile_kernels_o2();
TileKernels tile_kernels_o3();

}  // namespace routing::support
