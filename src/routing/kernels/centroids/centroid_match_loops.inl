// The loops of centroid_match.h. Included once per instruction set, inside an unnamed namespace; the includer defines
//   ROUTING_VECTOR_BYTES   size of a vector register
//   ROUTING_ROWS           centroids of a register block: 2 * ROUTING_ROWS accumulators stay in registers

constexpr std::int64_t kWidth = ROUTING_VECTOR_BYTES / 4;
constexpr int kRows = ROUTING_ROWS;
constexpr std::int64_t kVectors = kBlockTokens / kWidth;

using Vec = float __attribute__((vector_size(ROUTING_VECTOR_BYTES)));
using Ints = std::int32_t __attribute__((vector_size(ROUTING_VECTOR_BYTES)));
using Doubles = double __attribute__((vector_size(ROUTING_VECTOR_BYTES)));
using HalfVec = float __attribute__((vector_size(ROUTING_VECTOR_BYTES / 2)));
// Vectors in memory need no alignment and may be read from arrays of numbers.
using MemoryVec = float __attribute__((vector_size(ROUTING_VECTOR_BYTES), aligned(4), may_alias));
using MemoryInts = std::int32_t __attribute__((vector_size(ROUTING_VECTOR_BYTES), aligned(4), may_alias));
using MemoryDoubles = double __attribute__((vector_size(ROUTING_VECTOR_BYTES), aligned(8), may_alias));
using MemoryHalf = float __attribute__((vector_size(ROUTING_VECTOR_BYTES / 2), aligned(4), may_alias));

inline Vec load(const float* from) {
  return *reinterpret_cast<const MemoryVec*>(from);
}
inline void store(float* to, Vec values) {
  *reinterpret_cast<MemoryVec*>(to) = values;
}
inline void store(std::int32_t* to, Ints values) {
  *reinterpret_cast<MemoryInts*>(to) = values;
}
inline Vec splat(float value) {
  return value - Vec{};
}

// The upper half of the lanes is added to the lower until one is left.
template <class Vector, class Number>
inline Number sum_of_lanes(Vector values) {
  Number lanes[kWidth];
  __builtin_memcpy(lanes, &values, sizeof(values));
  for (std::int64_t half = kWidth / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

#if ROUTING_VECTOR_BYTES == 64
// Tiles of 16 x 16: rows h apart exchange the blocks of h numbers that belong to the other, for h = 8, 4, 2, 1.
constexpr std::int64_t kTile = 16;

inline void exchange(Vec& first, Vec& second, const Ints& to_first, const Ints& to_second) {
  const Vec before = first;
  first = __builtin_shuffle(before, second, to_first);
  second = __builtin_shuffle(before, second, to_second);
}

inline void transpose_tile(const float* const* rows, std::int64_t d, float* columns) {
  constexpr Ints k8a = {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};
  constexpr Ints k8b = {8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31};
  constexpr Ints k4a = {0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27};
  constexpr Ints k4b = {4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31};
  constexpr Ints k2a = {0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29};
  constexpr Ints k2b = {2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31};
  constexpr Ints k1a = {0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30};
  constexpr Ints k1b = {1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31};
  Vec row[kTile];
#pragma GCC unroll 16
  for (int r = 0; r < kTile; ++r) row[r] = load(rows[r] + d);
#pragma GCC unroll 16
  for (int r = 0; r < 8; ++r) exchange(row[r], row[r + 8], k8a, k8b);
#pragma GCC unroll 16
  for (int r = 0; r < 8; ++r) exchange(row[r + r / 4 * 4], row[r + r / 4 * 4 + 4], k4a, k4b);
#pragma GCC unroll 16
  for (int r = 0; r < 8; ++r) exchange(row[r + r / 2 * 2], row[r + r / 2 * 2 + 2], k2a, k2b);
#pragma GCC unroll 16
  for (int r = 0; r < 8; ++r) exchange(row[2 * r], row[2 * r + 1], k1a, k1b);
#pragma GCC unroll 16
  for (int r = 0; r < kTile; ++r) store(columns + (d + r) * kBlockTokens, row[r]);
}
#else
// Tiles of 4 x 4, which these levels transpose well in their smallest registers.
constexpr std::int64_t kTile = 4;
using Four = float __attribute__((vector_size(16)));
using MemoryFour = float __attribute__((vector_size(16), aligned(4), may_alias));
using FourPlaces = std::int32_t __attribute__((vector_size(16)));

inline void transpose_tile(const float* const* rows, std::int64_t d, float* columns) {
  const Four a = *reinterpret_cast<const MemoryFour*>(rows[0] + d);
  const Four b = *reinterpret_cast<const MemoryFour*>(rows[1] + d);
  const Four c = *reinterpret_cast<const MemoryFour*>(rows[2] + d);
  const Four e = *reinterpret_cast<const MemoryFour*>(rows[3] + d);
  const Four ab_low = __builtin_shuffle(a, b, FourPlaces{0, 4, 1, 5});
  const Four ab_high = __builtin_shuffle(a, b, FourPlaces{2, 6, 3, 7});
  const Four ce_low = __builtin_shuffle(c, e, FourPlaces{0, 4, 1, 5});
  const Four ce_high = __builtin_shuffle(c, e, FourPlaces{2, 6, 3, 7});
  float* to = columns + d * kBlockTokens;
  *reinterpret_cast<MemoryFour*>(to) = __builtin_shuffle(ab_low, ce_low, FourPlaces{0, 1, 4, 5});
  *reinterpret_cast<MemoryFour*>(to + kBlockTokens) = __builtin_shuffle(ab_low, ce_low, FourPlaces{2, 3, 6, 7});
  *reinterpret_cast<MemoryFour*>(to + 2 * kBlockTokens) = __builtin_shuffle(ab_high, ce_high, FourPlaces{0, 1, 4, 5});
  *reinterpret_cast<MemoryFour*>(to + 3 * kBlockTokens) = __builtin_shuffle(ab_high, ce_high, FourPlaces{2, 3, 6, 7});
}
#endif

// columns[d][t] = token t's number d; lanes past the last token repeat it, so that they hold nothing foreign.
inline void transpose(const TokenBlock& tokens, std::int64_t dim, float* columns) {
  const float* rows[kBlockTokens];
  for (std::int64_t t = 0; t < kBlockTokens; ++t) {
    rows[t] = tokens.rows + std::int64_t{tokens.positions[t < tokens.count ? t : tokens.count - 1]} * dim;
  }
  const std::int64_t used = (tokens.count + 2 * kWidth - 1) / (2 * kWidth) * (2 * kWidth);
  for (std::int64_t t = 0; t < used; t += kTile) {
    std::int64_t d = 0;
    for (; d + kTile <= dim; d += kTile) transpose_tile(rows + t, d, columns + t);
    for (; d < dim; ++d) {
      for (std::int64_t i = 0; i < kTile; ++i) columns[d * kBlockTokens + t + i] = rows[t + i][d];
    }
  }
}

// Scores of kCount centroids and the tokens of two registers.
template <int kCount>
inline void score_rows(const float* centroid, std::int64_t dim, const float* columns, float* scores) {
  Vec left[kCount];
  Vec right[kCount];
  for (int r = 0; r < kCount; ++r) left[r] = right[r] = Vec{};
  for (std::int64_t d = 0; d < dim; ++d) {
    const Vec token_left = load(columns + d * kBlockTokens);
    const Vec token_right = load(columns + d * kBlockTokens + kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      const float factor = centroid[r * dim + d];
      left[r] += factor * token_left;
      right[r] += factor * token_right;
    }
  }
  for (int r = 0; r < kCount; ++r) {
    store(scores + r * kBlockTokens, left[r]);
    store(scores + r * kBlockTokens + kWidth, right[r]);
  }
}

// Asks for some rows of the next block at a time: scoring this one takes as long as reading the next.
class FetchAhead {
 public:
  FetchAhead(const TokenBlock& tokens, std::int64_t dim)
      : tokens_(tokens),
        dim_(dim),
        next_(tokens.count),
        last_(tokens.count + (tokens.following < kBlockTokens ? tokens.following : kBlockTokens)) {}
  void fetch(std::int64_t count) {
    constexpr std::int64_t kNumbersPerLine = 16;
    for (; count > 0 && next_ < last_; --count, ++next_) {
      const float* row = tokens_.rows + std::int64_t{tokens_.positions[next_]} * dim_;
      for (std::int64_t d = 0; d < dim_; d += kNumbersPerLine) __builtin_prefetch(row + d);
    }
  }

 private:
  const TokenBlock& tokens_;
  std::int64_t dim_, next_, last_;
};

void score(const CentroidRows& centroids, const TokenBlock& tokens, float* columns, float* scores) {
  if (tokens.count == 0) return;
  const std::int64_t dim = centroids.dim;
  transpose(tokens, dim, columns);
  FetchAhead ahead(tokens, dim);
  const std::int64_t steps = kVectors / 2 * (centroids.clusters / kRows);
  const std::int64_t rows_a_step = steps == 0 ? kBlockTokens : (kBlockTokens + steps - 1) / steps;
  for (std::int64_t t = 0; t < tokens.count; t += 2 * kWidth) {
    std::int64_t c = 0;
    for (; c + kRows <= centroids.clusters; c += kRows) {
      ahead.fetch(rows_a_step);
      score_rows<kRows>(centroids.rows + c * dim, dim, columns + t, scores + c * kBlockTokens + t);
    }
    for (; c < centroids.clusters; ++c) {
      score_rows<1>(centroids.rows + c * dim, dim, columns + t, scores + c * kBlockTokens + t);
    }
  }
}

void choose(const CentroidRows& centroids, const float* scores, const ChosenCentroids& chosen) {
  for (std::int64_t t = 0; t < kBlockTokens; t += kWidth) {
    Vec best = load(scores + t);
    Vec best_margin = best - centroids.tau[0];
    Ints argmax{};
    Ints nearest{};
    for (std::int64_t first = 0; first < centroids.clusters; first += 32) {
      const std::int64_t last = first + 32 < centroids.clusters ? first + 32 : centroids.clusters;
      Ints bits{};
      Ints bit = 1 - Ints{};
      Ints number = static_cast<std::int32_t>(first) - Ints{};
      for (std::int64_t c = first; c < last; ++c) {
        const Vec s = load(scores + c * kBlockTokens + t);
        const Vec tau = splat(centroids.tau[c]);
        const Vec margin = s - tau;
        const Ints better = s > best;
        const Ints nearer = margin > best_margin;
        best = better ? s : best;
        argmax = better ? number : argmax;
        best_margin = nearer ? margin : best_margin;
        nearest = nearer ? number : nearest;
        bits |= (s >= tau) & bit;
        bit <<= 1;
        number += 1;
      }
      store(reinterpret_cast<std::int32_t*>(chosen.passing) + first / 32 * kBlockTokens + t, bits);
    }
    store(chosen.argmax + t, argmax);
    store(chosen.nearest + t, nearest);
  }
}

// Tokens of whole registers together, the others one by one.
void sum(const CentroidRows& centroids, std::int64_t count, const float* scores, const ScoreSums& sums) {
  const std::int64_t whole = count / kWidth * kWidth;
  for (std::int64_t c = 0; c < centroids.clusters; ++c) {
    const float* row = scores + c * kBlockTokens;
    const Vec tau = splat(centroids.tau[c]);
    Vec total{};
    Vec squares{};
    Ints passing{};
    for (std::int64_t t = 0; t < whole; t += kWidth) {
      const Vec s = load(row + t);
      total += s;
      squares += s * s;
      passing -= s >= tau;
    }
    float score_total = sum_of_lanes<Vec, float>(total);
    float square_total = sum_of_lanes<Vec, float>(squares);
    std::int32_t passed = sum_of_lanes<Ints, std::int32_t>(passing);
    for (std::int64_t t = whole; t < count; ++t) {
      score_total += row[t];
      square_total += row[t] * row[t];
      passed += row[t] >= centroids.tau[c] ? 1 : 0;
    }
    sums.score[c] += score_total;
    sums.square[c] += square_total;
    sums.passing[c] += passed;
  }
}

void above(std::int64_t clusters, const float* scores, const float* limits, std::uint64_t* bits) {
  Ints lane_bits[kVectors];
  for (std::int64_t v = 0; v < kVectors; ++v) {
    for (std::int64_t lane = 0; lane < kWidth; ++lane) {
      lane_bits[v][lane] = static_cast<std::int32_t>(1U << static_cast<unsigned>((v * kWidth + lane) % 32));
    }
  }
  for (std::int64_t c = 0; c < clusters; ++c) {
    const Vec limit = splat(limits[c]);
    Ints halves[2] = {};
    for (std::int64_t v = 0; v < kVectors; ++v) {
      halves[v / (kVectors / 2)] |= (load(scores + c * kBlockTokens + v * kWidth) > limit) & lane_bits[v];
    }
    // Every bit is set in one lane at most, so that their sum is their union; unsigned, because bit 31 is a sign.
    const auto low = static_cast<std::uint32_t>(sum_of_lanes<Ints, std::uint32_t>(halves[0]));
    const auto high = static_cast<std::uint32_t>(sum_of_lanes<Ints, std::uint32_t>(halves[1]));
    bits[c] = low | (static_cast<std::uint64_t>(high) << 32U);
  }
}

double distance(const CentroidRows& centroids, const TokenBlock& tokens, const std::int32_t* cluster) {
  const std::int64_t dim = centroids.dim;
  const std::int64_t whole = dim / kWidth * kWidth;
  Vec lanes{};
  double total = 0.0;
  for (std::int64_t t = 0; t < tokens.count; ++t) {
    const float* token = tokens.rows + std::int64_t{tokens.positions[t]} * dim;
    const float* centroid = centroids.rows + std::int64_t{cluster[t]} * dim;
    for (std::int64_t d = 0; d < whole; d += kWidth) {
      const Vec difference = load(token + d) - load(centroid + d);
      lanes += difference * difference;
    }
    for (std::int64_t d = whole; d < dim; ++d) {
      const double difference = static_cast<double>(token[d]) - centroid[d];
      total += difference * difference;
    }
  }
  return total + sum_of_lanes<Vec, float>(lanes);
}

void add(const TokenBlock& tokens, std::int64_t dim, const std::int32_t* cluster, double* sums) {
  constexpr std::int64_t kHalf = kWidth / 2;
  for (std::int64_t t = 0; t < tokens.count; ++t) {
    const float* token = tokens.rows + std::int64_t{tokens.positions[t]} * dim;
    double* to = sums + std::int64_t{cluster[t]} * dim;
    std::int64_t d = 0;
    for (; d + kHalf <= dim; d += kHalf) {
      const HalfVec numbers = *reinterpret_cast<const MemoryHalf*>(token + d);
      *reinterpret_cast<MemoryDoubles*>(to + d) += __builtin_convertvector(numbers, Doubles);
    }
    for (; d < dim; ++d) to[d] += token[d];
  }
}

constexpr MatchLoops kLoops{score, choose, sum, above, distance, add};
