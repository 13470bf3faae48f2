// The loops of dense_rows.h in bfloat16 for AVX-512. Nothing but multiply_rows_avx512_bf16 may leave this file, see
// dense_rows_avx512.cpp.
#include "routing/kernels/dense/dense_rows.h"

#include <cstdint>
#include <immintrin.h>

namespace routing::kernels {
namespace {

using Half = std::uint16_t;
using Vector = __m512;
using WeightVector = __m512i;  // sixteen pairs of neighbours in depth
using Mask = __mmask16;
constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kPairLanes = 2 * kLanes;  // halves in a vector
constexpr int kWide = 16;
constexpr int kGroupRows = 6;
constexpr int kGroupVectors = 4;
constexpr std::int64_t kStep = 2;
constexpr std::int64_t kBytesAhead = 4096;

inline Vector zero() {
  return _mm512_setzero_ps();
}
inline Vector add(Vector a, Vector b) {
  return _mm512_add_ps(a, b);
}
inline Vector multiply_add(Vector sum, WeightVector a, WeightVector b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
// NaN becomes 0, as in the matmuls.
inline Vector at_least_zero(Vector a) {
  return _mm512_max_ps(a, _mm512_setzero_ps());
}
inline Mask mask_of(std::int64_t count) {
  return count >= kLanes ? Mask{0xffff} : static_cast<Mask>(count <= 0 ? 0U : (1U << static_cast<unsigned>(count)) - 1);
}
inline Vector load_some(const float* from, Mask mask) {
  return _mm512_maskz_loadu_ps(mask, from);
}
inline void store_some(float* to, Mask mask, Vector values) {
  _mm512_mask_storeu_ps(to, mask, values);
}

struct Left {
  const Half* first;
  std::int64_t depth;

  Left(const RowProduct& product, std::int64_t row)
      : first(static_cast<const Half*>(product.rows) + row * product.depth), depth(product.depth) {}
  WeightVector at(int row, std::int64_t k) const {
    int pair;
    __builtin_memcpy(&pair, first + row * depth + k, sizeof(pair));
    return _mm512_set1_epi32(pair);
  }
  // The last number of an odd depth, with 0 as its neighbour.
  WeightVector half_at(int row, std::int64_t k) const { return _mm512_set1_epi32(first[row * depth + k]); }
};

// The first number of the weights that meet a column.
inline const Half* first_weight(const RowWeights& weights, std::int64_t column) {
  return static_cast<const Half*>(weights.values) + column / weights.strip_columns * weights.strip_stride +
         column % weights.strip_columns * (weights.paired ? 2 : 1);
}

// Weights that lie there as pairs, filled up with zeros to a whole pair and a whole strip.
struct Pairs {
  template <int kVectors, bool kSome>
  struct Right {
    const Half* first;
    std::int64_t stride;

    Right(const RowProduct& product, std::int64_t column, std::int64_t)
        : first(first_weight(product.weights, column)), stride(product.weights.depth_stride) {}
    [[gnu::always_inline]] void read(std::int64_t k, WeightVector (&weights)[kVectors]) const {
      const Half* row = first + k * stride;
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) weights[v] = _mm512_loadu_si512(row + v * kPairLanes);
    }
    void read_half(std::int64_t k, WeightVector (&weights)[kVectors]) const {
      read(k, weights);
    }
    static void in_order(Vector (&)[kVectors]) {}
  };
};

// Plain rows, of which two are zipped. Zipping works inside of quarters of a vector: of 32 columns, the first vector
// gets 0-3, 8-11, 16-19, 24-27, the second the others.
struct PlainRows {
  template <int kVectors, bool kSome>
  struct Right {
    static_assert(kVectors % 2 == 0);
    static constexpr int kLoads = kVectors / 2;
    const Half* first;
    std::int64_t stride;
    __mmask32 masks[kLoads];

    Right(const RowProduct& product, std::int64_t column, std::int64_t columns)
        : first(first_weight(product.weights, column)), stride(product.weights.depth_stride) {
      for (int load = 0; load < kLoads; ++load) {
        const std::int64_t count = columns - load * kPairLanes;
        masks[load] = static_cast<__mmask32>(mask_of(count)) | static_cast<__mmask32>(mask_of(count - kLanes)) << 16U;
      }
    }
    [[gnu::always_inline]] __m512i load(const Half* row, int index) const {
      const Half* from = row + index * kPairLanes;
      // Zipping fills the processor's window, so that a single row does not see far enough ahead: without this, weights
      // from memory took 1.5 times as long as reading them, with it 1.2. In float32 it changed nothing.
      if (kVectors == kWide) _mm_prefetch(reinterpret_cast<const char*>(from) + kBytesAhead, _MM_HINT_T0);
      return kSome ? _mm512_maskz_loadu_epi16(masks[index], from) : _mm512_loadu_si512(from);
    }
    [[gnu::always_inline]] static void zip(__m512i upper, __m512i lower, WeightVector* weights) {
      weights[0] = _mm512_unpacklo_epi16(upper, lower);
      weights[1] = _mm512_unpackhi_epi16(upper, lower);
    }
    [[gnu::always_inline]] void read(std::int64_t k, WeightVector (&weights)[kVectors]) const {
      const Half* row = first + k * stride;
#pragma GCC unroll 8
      for (int index = 0; index < kLoads; ++index)
        zip(load(row, index), load(row + stride, index), weights + 2 * index);
    }
    [[gnu::always_inline]] void read_half(std::int64_t k, WeightVector (&weights)[kVectors]) const {
      const Half* row = first + k * stride;
#pragma GCC unroll 8
      for (int index = 0; index < kLoads; ++index) zip(load(row, index), _mm512_setzero_si512(), weights + 2 * index);
    }
    static void in_order(Vector (&sums)[kVectors]) {
      const __m512i lower = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
      const __m512i upper = _mm512_add_epi32(lower, _mm512_set1_epi32(8));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; v += 2) {
        const Vector first_half = _mm512_permutex2var_ps(sums[v], lower, sums[v + 1]);
        sums[v + 1] = _mm512_permutex2var_ps(sums[v], upper, sums[v + 1]);
        sums[v] = first_half;
      }
    }
  };
};

// clang-format off
#include "routing/kernels/dense/dense_rows.inl"
// clang-format on

}  // namespace

void multiply_rows_avx512_bf16(const RowProduct& product, std::int64_t first, std::int64_t end) {
  if (product.weights.paired) {
    multiply_rows<Pairs>(product, first, end);
  } else {
    multiply_rows<PlainRows>(product, first, end);
  }
}

}  // namespace routing::kernels
