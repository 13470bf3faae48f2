// TILE_KERNELS is the name of the one function of this file. No function is shared with other files: what the linker
// takes from here must not meet a processor without AVX-512.
#include "support/amx/amx_tile_kernels.h"

#include <immintrin.h>

namespace routing::support {
namespace {

const char* bytes_of(const void* pointer) {
  return static_cast<const char*>(pointer);
}

void product(const TileProduct& p) {
  _tile_loadconfig(p.config);
  _tile_loadd(0, p.c, p.c_distance);
  _tile_loadd(1, p.a, p.a_distance);
  _tile_stream_loadd(2, p.b, p.b_distance);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, p.c, p.c_distance);
  _tile_release();
}

void product_2x2(const TileProduct& p) {
  _tile_loadconfig(p.config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const char* lower_a = bytes_of(p.a) + 16 * p.a_distance;
  for (std::int64_t k = 0; k < p.depth; k += 32) {
    const char* b = bytes_of(p.b) + k / 2 * p.b_distance;
    _tile_loadd(4, bytes_of(p.a) + 2 * k, p.a_distance);
    _tile_loadd(5, lower_a + 2 * k, p.a_distance);
    _tile_loadd(6, b, p.b_distance);
    _tile_loadd(7, b + 64, p.b_distance);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  float* lower_c = p.c + 16 * (p.c_distance / 4);
  _tile_stored(0, p.c, p.c_distance);
  _tile_stored(1, p.c + 16, p.c_distance);
  _tile_stored(2, lower_c, p.c_distance);
  _tile_stored(3, lower_c + 16, p.c_distance);
  _tile_release();
}

void copy_all(const TileProduct& p) {
  _tile_loadconfig(p.config);
  const char* a = bytes_of(p.a);
  _tile_loadd(0, a, 64);
  _tile_loadd(1, a + 1 * 1024, 64);
  _tile_loadd(2, a + 2 * 1024, 64);
  _tile_loadd(3, a + 3 * 1024, 64);
  _tile_loadd(4, a + 4 * 1024, 64);
  _tile_loadd(5, a + 5 * 1024, 64);
  _tile_loadd(6, a + 6 * 1024, 64);
  _tile_loadd(7, a + 7 * 1024, 64);
  _tile_zero(5);
  _tile_stored(0, p.c, 64);
  _tile_stored(1, p.c + 1 * 256, 64);
  _tile_stored(2, p.c + 2 * 256, 64);
  _tile_stored(3, p.c + 3 * 256, 64);
  _tile_stored(4, p.c + 4 * 256, 64);
  _tile_stored(5, p.c + 5 * 256, 64);
  _tile_stored(6, p.c + 6 * 256, 64);
  _tile_stored(7, p.c + 7 * 256, 64);
  _tile_release();
}

// r12 and r13 have encodings of their own, as rsp and rbp have, which cannot be taken here.
#define LOAD_BY(base_register, index_register, operand, base_value, index_value)            \
  do {                                                                                      \
    register const char* base __asm__(base_register) = (base_value);                        \
    register std::int64_t index __asm__(index_register) = (index_value);                    \
    __asm__ volatile("tileloadd " operand ", %%tmm3" : : "r"(base), "r"(index) : "memory"); \
    _tile_stored(3, out, 64);                                                               \
    out += 256;                                                                             \
  } while (false)

void address_forms(const TileProduct& p) {
  _tile_loadconfig(p.config);
  const char* a = bytes_of(p.a) + 4096;
  float* out = p.c;
  LOAD_BY("rax", "rcx", "(%%rax,%%rcx,1)", a, 128);
  LOAD_BY("r13", "r12", "(%%r13,%%r12,1)", a, 128);
  LOAD_BY("r12", "r13", "0x40(%%r12,%%r13,2)", a - 0x40, 64);
  LOAD_BY("r15", "r8", "-0x80(%%r15,%%r8,4)", a + 0x80, 32);
  LOAD_BY("rsi", "r14", "0x7f8(%%rsi,%%r14,8)", a - 0x7f8, 16);
  LOAD_BY("r10", "rdi", "-0x12348(%%r10,%%rdi,1)", a + 0x12348, 128);
  LOAD_BY("r9", "r11", "%%es:(%%r9,%%r11,1)", a, 128);
  // Backwards: tile row 0 is the last row of memory … and back again by storing backwards.
  {
    _tile_loadd(3, a + 15 * 128, -128);
    _tile_stored(3, out + 15 * 16, -64);
    out += 256;
  }
  __asm__ volatile("tileloadd (%0), %%tmm3" : : "r"(a) : "memory");
  _tile_stored(3, out, 64);
  _tile_release();
}

// Rows of one word each; more would not do for the second tile.
const TileConfig kOneWord{.bytes = {4, 4}, .rows = {1, 1}};

void config_forms(const TileProduct& p) {
  _tile_loadconfig(&kOneWord);
  _tile_loadd(0, p.a, 64);
  _tile_stored(0, p.c, 64);
  _tile_release();
  // Addresses count from the thread's pointer here, which stands at its own address.
  const char* thread = nullptr;
  __asm__("mov %%fs:0, %0" : "=r"(thread));
  const std::int64_t offset = bytes_of(p.config) - thread;
  __asm__ volatile("ldtilecfg %%fs:(%0)" : : "r"(offset) : "memory");
  _tile_loadd(1, p.a, 64);
  _tile_stored(1, p.c + 16, 64);
  __asm__ volatile("ldtilecfg -64(%0,%1,8)" : : "r"(p.config), "r"(8L) : "memory");
  _tile_release();
}

void store_config(const TileConfig* in, TileConfig* out) {
  _tile_loadconfig(in);
  // GCC 12 declares eight bytes of the result; the rest must not be kept in registers.
  _tile_storeconfig(out);
  __asm__ volatile("" : : : "memory");
  _tile_release();
}

float sum_across_tiles(const TileProduct& p) {
#if defined(__AVX512BF16__) && defined(__OPTIMIZE__)
  __m512 low = _mm512_loadu_ps(p.c);
  __m512 high = _mm512_loadu_ps(p.c + 16);
  __mmask16 every_second = _cvtu32_mask16(0x5555);
  __asm__ volatile("" : "+v"(low), "+v"(high), "+k"(every_second));
  _tile_loadconfig(p.config);
  _tile_loadd(1, p.a, p.a_distance);
  _tile_loadd(2, p.b, p.b_distance);
  _tile_zero(0);
  _tile_dpbf16ps(0, 1, 2);
  _tile_release();
  __asm__ volatile("" : "+v"(low), "+v"(high), "+k"(every_second));
  const __m512 sums = _mm512_add_ps(low, high);
  alignas(64) float parts[16] = {};
  _mm512_mask_store_ps(parts, every_second, sums);
  _mm512_mask_store_ps(parts, _knot_mask16(every_second), sums);
  float sum = 0;
  for (const float part : parts) sum += part;
  return sum;
#else
  __m128 low = _mm_setzero_ps();
  for (int i = 0; i < 32; i += 4) low = _mm_add_ps(low, _mm_loadu_ps(p.c + i));
  __asm__ volatile("" : "+x"(low));
  _tile_loadconfig(p.config);
  _tile_loadd(1, p.a, p.a_distance);
  _tile_loadd(2, p.b, p.b_distance);
  _tile_zero(0);
  _tile_dpbf16ps(0, 1, 2);
  _tile_release();
  __asm__ volatile("" : "+x"(low));
  alignas(16) float parts[4];
  _mm_store_ps(parts, low);
  return parts[0] + parts[1] + parts[2] + parts[3];
#endif
}

}  // namespace

TileKernels TILE_KERNELS() {
  TileKernels kernels;
  kernels.name = TILE_KERNELS_NAME;
#if defined(__AVX512F__)
  kernels.needs_avx512 = true;
#endif
  kernels.product = product;
  kernels.product_2x2 = product_2x2;
  kernels.copy_all = copy_all;
  kernels.address_forms = address_forms;
  kernels.config_forms = config_forms;
  kernels.store_config = store_config;
  kernels.sum_across_tiles = sum_across_tiles;
  return kernels;
}

}  // namespace routing::support
