// The products of a block with a single query, as decoding has them. Included after attend_bf16_block.inl.
//
// Packed keys and values are worth their price where many queries meet them. One query takes them as they lie: rows of
// keys are turned into columns in registers, rows of values woven in pairs, and nothing is written between. Sums are
// chains over the same pairs in the same order as those of multiply(), so the bits are those of the block; only for
// levels whose products are such chains (kChainsPairs).

// Up to 16 numbers of two rows, rounded, side by side.
inline __m512i halves_of_two(const float* low, const float* high, std::int64_t count) {
  const __mmask16 lanes = first_lanes(count);
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(lanes, high), _mm512_maskz_loadu_ps(lanes, low));
}
inline __m512i halves_of_two(const Half* low, const Half* high, std::int64_t count) {
  const __mmask16 lanes = first_lanes(count);
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi16(lanes, low)),
                            _mm256_maskz_loadu_epi16(lanes, high), 1);
}

// Up to 32 numbers of one.
inline __m512i halves_of_one(const float* row, std::int64_t count) {
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(first_lanes(count - kVector), row + kVector),
                                      _mm512_maskz_loadu_ps(first_lanes(count), row));
}
inline __m512i halves_of_one(const Half* row, std::int64_t count) {
  const auto lanes = static_cast<__mmask32>(count >= kStep ? ~0U : (1U << unsigned(count)) - 1U);
  return _mm512_maskz_loadu_epi16(lanes, row);
}

// sum[key] += the products of numbers d … d + 15 of 16 keys with the query's.
template <class Number>
inline __m512 add_sixteen(__m512 sum, const Number* const* keys, std::int64_t d, std::int64_t count, const Pair* q) {
  // What two shuffles leave in order: keys 0 to 3 beside 4 to 7, 8 to 11 beside 12 to 15.
  __m512i a[8];
  __m512i b[8];
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r) {
    const int key = r / 4 * 8 + r % 4;
    a[r] = halves_of_two(keys[key] + d, keys[key + 4] + d, count);
  }
#pragma GCC unroll 4
  for (int r = 0; r < 8; r += 2) {
    b[r] = _mm512_unpacklo_epi32(a[r], a[r + 1]);
    b[r + 1] = _mm512_unpackhi_epi32(a[r], a[r + 1]);
  }
#pragma GCC unroll 2
  for (int r = 0; r < 8; r += 4) {
    a[r] = _mm512_unpacklo_epi64(b[r], b[r + 2]);
    a[r + 1] = _mm512_unpackhi_epi64(b[r], b[r + 2]);
    a[r + 2] = _mm512_unpacklo_epi64(b[r + 1], b[r + 3]);
    a[r + 3] = _mm512_unpackhi_epi64(b[r + 1], b[r + 3]);
  }
  // a[4 g + c] now holds word c of four keys in its lanes 0 and 2, word 4 + c in the others.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    b[c] = _mm512_shuffle_i32x4(a[c], a[4 + c], 0x88);
    b[4 + c] = _mm512_shuffle_i32x4(a[c], a[4 + c], 0xDD);
  }
#pragma GCC unroll 8
  for (int w = 0; w < 8; ++w) {
    sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(q[d / 2 + w])), (__m512bh)b[w]);
  }
  return sum;
}

// Likewise of numbers d … d + 31.
template <class Number>
inline __m512 add_thirty_two(__m512 sum, const Number* const* keys, std::int64_t d, std::int64_t count, const Pair* q) {
  __m512i a[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) a[r] = halves_of_one(keys[r] + d, count);
  transpose_words(a);
#pragma GCC unroll 16
  for (int w = 0; w < 16; ++w) {
    sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(q[d / 2 + w])), (__m512bh)a[w]);
  }
  return sum;
}

// Where rows first … end of a list lie, in steps of eight; those from `count` on are the last one before.
template <class Number>
inline void find_rows(const Number* base, std::int64_t stride, const std::int32_t* rows, std::int64_t first,
                      std::int64_t end, std::int64_t count, const Number** found) {
  const __m512i bytes = _mm512_set1_epi64(stride * std::int64_t{sizeof(Number)});
  const __m512i from = _mm512_set1_epi64(static_cast<long long>(reinterpret_cast<std::uintptr_t>(base)));
  for (std::int64_t j = first; j < end; j += 8) {
    __m256i number = _mm256_set1_epi32(rows[count - 1]);
    const std::int64_t left = count - j;
    if (left >= 8) {
      number = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + j));
    } else if (left > 0) {
      number =
          _mm256_mask_loadu_epi32(number, static_cast<__mmask8>((1U << static_cast<unsigned>(left)) - 1U), rows + j);
    }
    // Numbers of rows and bytes of one have 32 bits.
    const __m512i at = _mm512_add_epi64(from, _mm512_mul_epu32(_mm512_cvtepu32_epi64(number), bytes));
    _mm512_storeu_si512(found + j, at);
  }
}

// Asks for the keys that come after the tile's: those of the next tile, or the first of the block that follows. By then
// they have come, however far the memory is.
template <class Number>
inline void fetch_following(const Block& block, const Number* base, std::int64_t stride, const Tile& tile,
                            std::int64_t dim) {
  const std::int64_t left = block.num_keys - tile.begin - tile.count;
  const std::int32_t* rows = left > 0 ? block.key_rows + tile.begin + tile.count : block.next_key_rows;
  std::int64_t count = left > 0 ? left : block.num_next_keys;
  if (count > kKeyTile) count = kKeyTile;
  if (count <= 0) return;
  const Number* found[kKeyTile];
  find_rows(base, stride, rows, 0, round_up(count, 8), count, found);
  for (std::int64_t j = 0; j < count; ++j) fetch_row(found[j], dim);
}

// How far behind a key its value begins in the same row; -1 where values have rows of their own.
template <class Number>
inline std::int64_t values_behind_keys(const Number* k, std::int64_t k_stride, const Number* v, std::int64_t v_stride) {
  const auto from = reinterpret_cast<std::uintptr_t>(k);
  const auto to = reinterpret_cast<std::uintptr_t>(v);
  if (k_stride != v_stride || to < from) return -1;
  const auto behind = static_cast<std::int64_t>((to - from) / sizeof(Number));
  return behind < k_stride ? behind : -1;
}

// s[j] = q . k_j for 16 keys from j on.
template <class Number>
inline void score_sixteen(const Number* const* keys, std::int64_t dim, const Half* q, std::int64_t j, float* s) {
  const Pair* const words = as_pairs(q);
  __m512 sum = _mm512_setzero_ps();
  std::int64_t d = 0;
  for (; dim - d > kVector; d += kStep) sum = add_thirty_two(sum, keys + j, d, dim - d, words);
  if (d < dim) sum = add_sixteen(sum, keys + j, d, dim - d, words);
  _mm512_store_ps(s + j, sum);
}

// o[e] += chain over pairs of keys of p[j] v_j[e] + p[j + 1] v_{j+1}[e], for kVectors vectors of numbers. Values begin
// `behind` numbers after values[j]. Keys from … to, an even number of them.
template <int kVectors, class Number>
inline void add_values(const Number* const* values, std::int64_t behind, std::int64_t e, std::int64_t dim,
                       const Half* p, std::int64_t from, std::int64_t to, float* o) {
  const __m512i places = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                          21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  __m512 sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sums[v] = _mm512_load_ps(o + e + v * kVector);
  for (std::int64_t j = from; j < to; j += 2) {
    const __m512bh left = (__m512bh)_mm512_set1_epi32(static_cast<int>(as_pairs(p)[j / 2]));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t at = e + v * kVector;
      const __m512i halves = halves_of_two(values[j] + behind + at, values[j + 1] + behind + at, dim - at);
      sums[v] = _mm512_dpbf16_ps(sums[v], left, (__m512bh)_mm512_permutexvar_epi16(places, halves));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) _mm512_store_ps(o + e + v * kVector, sums[v]);
}

template <class Number>
inline void combine_one(const Number* const* values, std::int64_t behind, std::int64_t dim, const Half* p,
                        std::int64_t from, std::int64_t to, float* o) {
  std::int64_t e = 0;
  for (; dim - e > 3 * kVector; e += 4 * kVector) add_values<4>(values, behind, e, dim, p, from, to, o);
  if (dim - e > kVector) {
    add_values<2>(values, behind, e, dim, p, from, to, o);
    e += 2 * kVector;
  }
  if (e < dim) add_values<1>(values, behind, e, dim, p, from, to, o);
}
