// Vectors, the exponential and the small matrix products of fused attention. Included once per instruction set, inside
// an unnamed namespace; the includer defines
//   ROUTING_VECTOR_BYTES   size of a vector register
//   ROUTING_ROWS           rows of a register block: 2 * ROUTING_ROWS accumulators stay in registers
//
// Every number that is computed here is one chain of multiply-adds in a fixed order, whichever block it falls into.

constexpr std::int64_t kWidth = ROUTING_VECTOR_BYTES / 4;
// Two registers side by side: every broadcast number is used twice.
constexpr std::int64_t kLanes = 2 * kWidth;
constexpr int kRows = ROUTING_ROWS;

// Vectors in memory need no alignment and may be read from arrays of numbers.
using Vec = float __attribute__((vector_size(ROUTING_VECTOR_BYTES)));
using Ints = std::int32_t __attribute__((vector_size(ROUTING_VECTOR_BYTES)));
using MemoryVec = float __attribute__((vector_size(ROUTING_VECTOR_BYTES), aligned(4), may_alias));
using MemoryInts = std::int32_t __attribute__((vector_size(ROUTING_VECTOR_BYTES), aligned(4), may_alias));

inline Vec load(const float* from) {
  return *reinterpret_cast<const MemoryVec*>(from);
}
inline Ints load(const std::int32_t* from) {
  return *reinterpret_cast<const MemoryInts*>(from);
}
inline void store(float* to, Vec values) {
  *reinterpret_cast<MemoryVec*>(to) = values;
}
inline Vec splat(float value) {
  return value - Vec{};
}
inline Ints splat(std::int32_t value) {
  return value - Ints{};
}

// Asks for a row of memory before it is needed: rows of strided heads are too far apart for the processor to guess.
inline void prefetch_row(const float* row, std::int64_t dim) {
  constexpr std::int64_t kNumbersPerLine = 16;
  for (std::int64_t d = 0; d < dim; d += kNumbersPerLine) __builtin_prefetch(row + d);
}

// e^x: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial of degree 7 in r, n added to the exponent. At most 2 units in
// the last place wrong for x in [-87, 88]; 0 below (also for minus infinity), capped above; exactly 1 at 0; not a
// number stays so.
inline Vec exp_of(Vec x) {
  constexpr float kLowest = -87.0F;
  constexpr float kHighest = 88.0F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number, kept in the low bits
  const Ints too_low = x < splat(kLowest);
  const Vec capped = x > splat(kHighest) ? splat(kHighest) : (too_low ? splat(kLowest) : x);
  const Vec shifted = capped * 1.44269504F + kRound;
  const Vec n = shifted - kRound;
  const Vec r = (capped - n * 0.693145752F) - n * 1.42860677e-6F;
  Vec p = splat(1.0F / 5040.0F);
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const Ints power = ((Ints)shifted + 127) << 23;
  return too_low ? Vec{} : p * (Vec)power;
}

// A relative table, so that the rows which one key needs for all lanes stand side by side:
// numbers[d][x] = rows[clip(max + lanes - 1 - x)][d], x < width.
struct SkewedTable {
  const float* numbers;
  std::int64_t width;
};
inline std::int64_t skewed_width(std::int64_t max_relative) {
  return 2 * max_relative + 2 * kLanes - 1;
}
inline std::int64_t table_size(std::int64_t max_relative, std::int64_t dim) {
  return skewed_width(max_relative) * dim;
}
inline void pack_table(const float* rows, std::int64_t max_relative, std::int64_t dim, float* packed) {
  const std::int64_t width = skewed_width(max_relative);
  for (std::int64_t x = 0; x < width; ++x) {
    std::int64_t offset = max_relative + kLanes - 1 - x;
    offset = offset < -max_relative ? -max_relative : (offset > max_relative ? max_relative : offset);
    const float* row = rows + (offset + max_relative) * dim;
    for (std::int64_t d = 0; d < dim; ++d) packed[d * width + x] = row[d];
  }
}

// rows[r][t * step] for r < kCount: what a register block broadcasts.
template <int kCount>
inline void dots_block(const float* const* rows, std::int64_t step, std::int64_t depth, const float* b,
                       std::int64_t b_stride, float* c, std::int64_t c_stride) {
  const float* row[kCount];
  Vec left[kCount];
  Vec right[kCount];
  for (int r = 0; r < kCount; ++r) {
    row[r] = rows[r];
    left[r] = right[r] = Vec{};
  }
  for (std::int64_t t = 0; t < depth; ++t) {
    const Vec b_left = load(b + t * b_stride);
    const Vec b_right = load(b + t * b_stride + kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      const float a = row[r][t * step];
      left[r] += a * b_left;
      right[r] += a * b_right;
    }
  }
  for (int r = 0; r < kCount; ++r) {
    store(c + r * c_stride, left[r]);
    store(c + r * c_stride + kWidth, right[r]);
  }
}

// c[r][lane] = sum over t of rows[r][t * step] * b[t][lane]
inline void dots(const float* const* rows, std::int64_t num_rows, std::int64_t step, std::int64_t depth, const float* b,
                 std::int64_t b_stride, float* c, std::int64_t c_stride) {
  std::int64_t r = 0;
  for (; r + kRows <= num_rows; r += kRows) {
    dots_block<kRows>(rows + r, step, depth, b, b_stride, c + r * c_stride, c_stride);
  }
  for (; r + 4 <= num_rows; r += 4) {
    dots_block<4>(rows + r, step, depth, b, b_stride, c + r * c_stride, c_stride);
  }
  for (; r < num_rows; ++r) dots_block<1>(rows + r, step, depth, b, b_stride, c + r * c_stride, c_stride);
}

template <int kCount>
inline void combine_block(const float* const* rows, std::int64_t first, std::int64_t depth, const float* b, float* c) {
  Vec left[kCount];
  Vec right[kCount];
  for (int r = 0; r < kCount; ++r) left[r] = right[r] = Vec{};
  for (std::int64_t t = 0; t < depth; ++t) {
    const float* row = rows[t] + first;
    const Vec b_left = load(b + t * kLanes);
    const Vec b_right = load(b + t * kLanes + kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      left[r] += row[r] * b_left;
      right[r] += row[r] * b_right;
    }
  }
  for (int r = 0; r < kCount; ++r) {
    store(c + r * kLanes, load(c + r * kLanes) + left[r]);
    store(c + r * kLanes + kWidth, load(c + r * kLanes + kWidth) + right[r]);
  }
}

// c[e][lane] += sum over t of rows[t][e] * b[t][lane], e < width
inline void combine(const float* const* rows, std::int64_t width, std::int64_t depth, const float* b, float* c) {
  std::int64_t e = 0;
  for (; e + kRows <= width; e += kRows) combine_block<kRows>(rows, e, depth, b, c + e * kLanes);
  for (; e < width; ++e) combine_block<1>(rows, e, depth, b, c + e * kLanes);
}

template <int kCount>
inline void skewed_dots_block(const float* skewed, std::int64_t skewed_stride, const std::int64_t* starts,
                              std::int64_t depth, const float* b, float* c) {
  const float* row[kCount];
  Vec left[kCount];
  Vec right[kCount];
  for (int r = 0; r < kCount; ++r) {
    row[r] = skewed + starts[r];
    left[r] = right[r] = Vec{};
  }
  for (std::int64_t t = 0; t < depth; ++t) {
    const Vec b_left = load(b + t * kLanes);
    const Vec b_right = load(b + t * kLanes + kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      left[r] += load(row[r] + t * skewed_stride) * b_left;
      right[r] += load(row[r] + t * skewed_stride + kWidth) * b_right;
    }
  }
  for (int r = 0; r < kCount; ++r) {
    store(c + r * kLanes, load(c + r * kLanes) + left[r]);
    store(c + r * kLanes + kWidth, load(c + r * kLanes + kWidth) + right[r]);
  }
}

// c[r][lane] += sum over t of skewed[t][starts[r] + lane] * b[t][lane]: the table rows of all lanes for key r.
inline void skewed_dots(const SkewedTable& table, const std::int64_t* starts, std::int64_t num_rows,
                        std::int64_t depth, const float* b, float* c) {
  std::int64_t r = 0;
  for (; r + kRows <= num_rows; r += kRows) {
    skewed_dots_block<kRows>(table.numbers, table.width, starts + r, depth, b, c + r * kLanes);
  }
  for (; r < num_rows; ++r) skewed_dots_block<1>(table.numbers, table.width, starts + r, depth, b, c + r * kLanes);
}

template <int kCount>
inline void skewed_combine_block(const float* skewed, std::int64_t skewed_stride, const std::int64_t* starts,
                                 std::int64_t depth, const float* b, float* c) {
  Vec left[kCount];
  Vec right[kCount];
  for (int r = 0; r < kCount; ++r) left[r] = right[r] = Vec{};
  for (std::int64_t t = 0; t < depth; ++t) {
    const float* row = skewed + starts[t];
    const Vec b_left = load(b + t * kLanes);
    const Vec b_right = load(b + t * kLanes + kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      left[r] += load(row + r * skewed_stride) * b_left;
      right[r] += load(row + r * skewed_stride + kWidth) * b_right;
    }
  }
  for (int r = 0; r < kCount; ++r) {
    store(c + r * kLanes, load(c + r * kLanes) + left[r]);
    store(c + r * kLanes + kWidth, load(c + r * kLanes + kWidth) + right[r]);
  }
}

// c[e][lane] += sum over t of skewed[e][starts[t] + lane] * b[t][lane], e < width
inline void skewed_combine(const SkewedTable& table, const std::int64_t* starts, std::int64_t width,
                           std::int64_t depth, const float* b, float* c) {
  std::int64_t e = 0;
  for (; e + kRows <= width; e += kRows) {
    skewed_combine_block<kRows>(table.numbers + e * table.width, table.width, starts, depth, b, c + e * kLanes);
  }
  for (; e < width; ++e) {
    skewed_combine_block<1>(table.numbers + e * table.width, table.width, starts, depth, b, c + e * kLanes);
  }
}
