// The loops of fused attention in bfloat16 for AMX: products on tile registers, everything else on AVX-512. Nothing but
// attend_loops_amx may leave this file, see attend_avx512.cpp.
#include "routing/core/random.h"
#include "routing/kernels/attend/attend_block.h"

#include <cstdint>
#include <immintrin.h>

namespace routing::kernels {
namespace {

// clang-format off
#include "routing/kernels/attend/attend_bf16_product.inl"
// clang-format on

constexpr std::int64_t kDepthUnit = 32;  // a row of a tile
constexpr bool kChainsPairs = false;     // tiles sum the first and the second numbers of pairs apart

// All eight tiles hold 16 rows of 64 bytes. The configuration belongs to the thread and oneDNN sets its own, so every
// block sets it anew and leaves none behind: a thread without one costs the kernel nothing to switch.
struct alignas(64) Configuration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);

struct Session {
  Session() {
    // GCC's intrinsic only tells the compiler of the first bytes; an object that is not on the stack is whole.
    static constexpr Configuration kConfiguration;
    _tile_loadconfig(&kConfiguration);
  }
  ~Session() { _tile_release(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

// Tiles 0 to 3 are sums, 4 and 5 rows of A, 6 and 7 columns of B. kTall and kWide: 32 rows and columns instead of 16.
template <bool kTall, bool kWide, bool kAdd>
inline void multiply_block(const Product& product, std::int64_t row, std::int64_t column) {
  constexpr std::int64_t kTile = 16;
  const std::int64_t c_bytes = product.c_stride * 4;
  const std::int64_t a_bytes = product.a_stride * 2;
  const std::int64_t b_bytes = product.b_stride * 4;
  float* c = product.c + row * product.c_stride + column;
  float* c_below = c + kTile * product.c_stride;
  if (kAdd) {
    _tile_loadd(0, c, c_bytes);
    if (kWide) _tile_loadd(1, c + kTile, c_bytes);
    if (kTall) _tile_loadd(2, c_below, c_bytes);
    if (kTall && kWide) _tile_loadd(3, c_below + kTile, c_bytes);
  } else {
    _tile_zero(0);
    if (kWide) _tile_zero(1);
    if (kTall) _tile_zero(2);
    if (kTall && kWide) _tile_zero(3);
  }
  const Half* a = product.a + row * product.a_stride;
  const Pair* b = product.b + column;
  for (std::int64_t t = 0; t < product.depth; t += kDepthUnit) {
    _tile_loadd(4, a + t, a_bytes);
    if (kTall) _tile_loadd(5, a + kTile * product.a_stride + t, a_bytes);
    _tile_loadd(6, b, b_bytes);
    if (kWide) _tile_loadd(7, b + kTile, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (kWide) _tile_dpbf16ps(1, 4, 7);
    if (kTall) _tile_dpbf16ps(2, 5, 6);
    if (kTall && kWide) _tile_dpbf16ps(3, 5, 7);
    b += kTile * product.b_stride;
  }
  _tile_stored(0, c, c_bytes);
  if (kWide) _tile_stored(1, c + kTile, c_bytes);
  if (kTall) _tile_stored(2, c_below, c_bytes);
  if (kTall && kWide) _tile_stored(3, c_below + kTile, c_bytes);
}

template <bool kTall, bool kAdd>
inline void multiply_rows(const Product& product, std::int64_t row) {
  std::int64_t column = 0;
  for (; column + 32 <= product.columns; column += 32) multiply_block<kTall, true, kAdd>(product, row, column);
  if (column < product.columns) multiply_block<kTall, false, kAdd>(product, row, column);
}

// GCC's tile loads do not say that they read memory: what was written before has to be there.
inline void finish_writes() {
  __asm__ volatile("" ::: "memory");
}

template <bool kAdd>
inline void multiply(const Product& product) {
  finish_writes();
  std::int64_t row = 0;
  for (; row + 32 <= product.rows; row += 32) multiply_rows<true, kAdd>(product, row);
  if (row < product.rows) multiply_rows<false, kAdd>(product, row);
  finish_writes();
}

// clang-format off
#include "routing/kernels/attend/attend_bf16_pack.inl"
#include "routing/kernels/attend/attend_bf16_block.inl"
#include "routing/kernels/attend/attend_bf16_one.inl"
#include "routing/kernels/attend/attend_bf16_forward.inl"
#include "routing/kernels/attend/attend_bf16_backward.inl"
// clang-format on

}  // namespace

AttendLoops attend_loops_amx() {
  return {kQueries, scratch_size, table_size, pack_table, forward, backward};
}

}  // namespace routing::kernels
