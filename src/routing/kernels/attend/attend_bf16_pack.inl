// Rows of float32 as the bfloat16 operands of matrix products. Included inside an unnamed namespace, after the level's
// own multiply(), by the levels that have bfloat16 instructions; all of them have AVX-512.
//
// A product C = A B sums over t. A is read in rows, its numbers side by side in t. B is read in pairs: row t / 2 holds
// for every column the numbers t (low half) and t + 1 (high half). The same vectors x_0, x_1, … are needed as
//   rows      [x][d]       A, summed over d
//   columns   [d / 2][x]   B, summed over d: the rows, transposed two numbers at a time
//   pairs     [x / 2][d]   B, summed over x: two rows, woven into each other
// Missing rows and numbers are zero: they add nothing to a sum.

constexpr std::int64_t kVector = 16;  // float32 in a register
constexpr std::int64_t kStep = 32;    // vectors are packed in multiples of this, and strips have as many queries
static_assert(kStep % kDepthUnit == 0);

inline std::int64_t round_up(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// Of a packed vector of `dim` numbers, what a product has to sum over, and what it has to compute if they are its
// columns: heads of 16 need not pay for the zeros up to 32.
inline std::int64_t summed(std::int64_t dim) {
  return round_up(dim, kDepthUnit);
}
inline std::int64_t computed(std::int64_t dim) {
  return round_up(dim, kVector);
}

inline __mmask16 first_lanes(std::int64_t count) {
  if (count >= kVector) return 0xFFFF;
  return count <= 0 ? __mmask16{0} : static_cast<__mmask16>((1U << count) - 1U);
}

inline void store_halves(Half* to, __m512 low, __m512 high) {
  _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// One row of `dim` numbers, rounded; zeros up to `padded`, a multiple of kStep.
inline void pack_row(const float* row, std::int64_t dim, std::int64_t padded, Half* to) {
  for (std::int64_t d = 0; d < padded; d += kStep) {
    store_halves(to + d, _mm512_maskz_loadu_ps(first_lanes(dim - d), row + d),
                 _mm512_maskz_loadu_ps(first_lanes(dim - d - kVector), row + d + kVector));
  }
}

inline void pack_row(const Half* row, std::int64_t dim, std::int64_t padded, Half* to) {
  for (std::int64_t d = 0; d < padded; d += kStep) {
    const auto lanes = static_cast<__mmask32>(dim - d >= kStep ? ~0U : (1U << unsigned(dim - d)) - 1U);
    _mm512_storeu_si512(to + d, _mm512_maskz_loadu_epi16(lanes, row + d));
  }
}

inline void clear_halves(Half* to, std::int64_t count) {
  for (std::int64_t n = 0; n < count; n += kStep) _mm512_storeu_si512(to + n, _mm512_setzero_si512());
}
inline void clear_floats(float* to, std::int64_t count) {
  for (std::int64_t n = 0; n < count; n += kVector) _mm512_storeu_ps(to + n, _mm512_setzero_ps());
}

// Rows lie apart and the processor does not guess where the next one is: it is asked for some rows ahead.
constexpr std::int64_t kAhead = 8;
template <class Number>
inline void fetch_row(const Number* row, std::int64_t dim) {
  constexpr std::int64_t kCacheLine = 64;
  for (std::int64_t d = 0; d < dim; d += kCacheLine / std::int64_t{sizeof(Number)}) __builtin_prefetch(row + d);
}
inline void fetch_row_to_write(const float* row, std::int64_t dim) {
  for (std::int64_t d = 0; d < dim; d += kVector) __builtin_prefetch(row + d, 1);
}

// The rows at some positions, rounded if they are not yet; zeros up to the next step.
template <class Number>
inline void pack_rows(const Number* base, std::int64_t stride, const std::int32_t* positions, std::int64_t count,
                      std::int64_t dim, Half* to) {
  const std::int64_t padded = round_up(dim, kStep);
  for (std::int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) fetch_row(base + positions[i + kAhead] * stride, dim);
    pack_row(base + positions[i] * stride, dim, padded, to + i * padded);
  }
  clear_halves(to + count * padded, (round_up(count, kStep) - count) * padded);
}

// Whichever of the two there is.
inline void pack_rows(const float* base, const Half* halves, std::int64_t stride, const std::int32_t* positions,
                      std::int64_t count, std::int64_t dim, Half* to) {
  if (halves != nullptr) return pack_rows(halves, stride, positions, count, dim, to);
  pack_rows(base, stride, positions, count, dim, to);
}

// rows[x][y] becomes rows[y][x], for 16 x 16 words.
inline void transpose_words(__m512i (&rows)[16]) {
  __m512i a[16];
  __m512i b[16];
#pragma GCC unroll 8
  for (int r = 0; r < 16; r += 2) {
    b[r] = _mm512_unpacklo_epi32(rows[r], rows[r + 1]);
    b[r + 1] = _mm512_unpackhi_epi32(rows[r], rows[r + 1]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < 16; r += 4) {
    a[r] = _mm512_unpacklo_epi64(b[r], b[r + 2]);
    a[r + 1] = _mm512_unpackhi_epi64(b[r], b[r + 2]);
    a[r + 2] = _mm512_unpacklo_epi64(b[r + 1], b[r + 3]);
    a[r + 3] = _mm512_unpackhi_epi64(b[r + 1], b[r + 3]);
  }
  // a[4 g + c] now holds, in its 128-bit lane l, column 4 l + c of rows 4 g … 4 g + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low01 = _mm512_shuffle_i32x4(a[c], a[4 + c], 0x88);
    const __m512i high01 = _mm512_shuffle_i32x4(a[c], a[4 + c], 0xDD);
    const __m512i low23 = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0x88);
    const __m512i high23 = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0xDD);
    rows[0 + c] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    rows[4 + c] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    rows[8 + c] = _mm512_shuffle_i32x4(low01, low23, 0xDD);
    rows[12 + c] = _mm512_shuffle_i32x4(high01, high23, 0xDD);
  }
}

// to[x][y] = from[y][x] for 16 x 16 words.
inline void transpose_words(const Pair* from, std::int64_t from_stride, Pair* to, std::int64_t to_stride) {
  __m512i rows[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) rows[r] = _mm512_loadu_si512(from + r * from_stride);
  transpose_words(rows);
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) _mm512_storeu_si512(to + r * to_stride, rows[r]);
}

inline const Pair* as_pairs(const Half* halves) {
  return reinterpret_cast<const Pair*>(halves);
}
inline Pair* as_pairs(Half* halves) {
  return reinterpret_cast<Pair*>(halves);
}

// columns[d / 2][x] of rows[x][d]; `count` rows, a multiple of 16.
inline void pack_columns(const Half* rows, std::int64_t count, std::int64_t padded, Pair* columns,
                         std::int64_t columns_stride) {
  for (std::int64_t x = 0; x < count; x += kVector) {
    for (std::int64_t t = 0; t < padded / 2; t += kVector) {
      transpose_words(as_pairs(rows) + x * (padded / 2) + t, padded / 2, columns + t * columns_stride + x,
                      columns_stride);
    }
  }
}

inline void weave(const Half* even, const Half* odd, Pair* to) {
  const __m512i low_places = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
                                              6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high_places = _mm512_add_epi16(low_places, _mm512_set1_epi16(16));
  const __m512i a = _mm512_loadu_si512(even);
  const __m512i b = _mm512_loadu_si512(odd);
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, low_places, b));
  _mm512_storeu_si512(to + kVector, _mm512_permutex2var_epi16(a, high_places, b));
}

// pairs[x / 2][d] of rows[x][d]; `count` rows, an even number.
inline void pack_pairs(const Half* rows, std::int64_t count, std::int64_t padded, Pair* pairs) {
  for (std::int64_t x = 0; x < count; x += 2) {
    for (std::int64_t d = 0; d < padded; d += kStep) {
      weave(rows + x * padded + d, rows + (x + 1) * padded + d, pairs + x / 2 * padded + d);
    }
  }
}

// to[c][r] = from[r][c] for 32 rows and `columns` (a multiple of 32) columns: two rows are woven into words, the words
// transposed.
inline void transpose_halves(const Half* from, std::int64_t from_stride, std::int64_t columns, Half* to,
                             std::int64_t to_stride) {
  alignas(64) Pair woven[kVector * kStep];
  for (std::int64_t c = 0; c < columns; c += kStep) {
    for (std::int64_t r = 0; r < kStep; r += 2) {
      weave(from + r * from_stride + c, from + (r + 1) * from_stride + c, woven + r / 2 * kStep);
    }
    for (std::int64_t half = 0; half < kStep; half += kVector) {
      transpose_words(woven + half, kStep, as_pairs(to + (c + half) * to_stride), to_stride / 2);
    }
  }
}

// A relative table as both operands, its rows rounded up to a multiple of kStep with zeros.
struct PackedTable {
  const Pair* columns;  // [dim / 2][rows]
  const Pair* pairs;    // [rows / 2][dim]
  std::int64_t rows;
};

inline std::int64_t table_size(std::int64_t max_relative, std::int64_t dim) {
  return round_up(2 * max_relative + 1, kStep) * round_up(dim, kStep);
}

inline void pack_table(const float* rows, std::int64_t max_relative, std::int64_t dim, float* to) {
  const std::int64_t padded = round_up(dim, kStep);
  const std::int64_t count = 2 * max_relative + 1;
  const std::int64_t table_rows = round_up(count, kStep);
  Pair* columns = reinterpret_cast<Pair*>(to);
  Pair* pairs = columns + padded / 2 * table_rows;
  alignas(64) Half step[kStep * kStep];
  for (std::int64_t x = 0; x < table_rows; x += kStep) {
    for (std::int64_t d = 0; d < padded; d += kStep) {
      for (std::int64_t r = 0; r < kStep; ++r) {
        pack_row(rows + (x + r) * dim + d, x + r < count ? dim - d : 0, kStep, step + r * kStep);
      }
      pack_columns(step, kStep, kStep, columns + d / 2 * table_rows + x, table_rows);
      for (std::int64_t r = 0; r < kStep; r += 2) {
        weave(step + r * kStep, step + (r + 1) * kStep, pairs + (x + r) / 2 * padded + d);
      }
    }
  }
}

inline PackedTable packed_table(const float* packed, std::int64_t max_relative, std::int64_t dim) {
  if (packed == nullptr) return {};
  const std::int64_t rows = round_up(2 * max_relative + 1, kStep);
  const Pair* columns = reinterpret_cast<const Pair*>(packed);
  return {columns, columns + round_up(dim, kStep) / 2 * rows, rows};
}
