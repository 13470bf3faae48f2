// One block of fused attention: its scores tile by tile, and its softmax. Included after attend_lanes.inl.
// Legend: i a lane (query of the block), j a key of the tile, d and e numbers of a key or value vector.

inline SkewedTable skewed_table(const Block& block, const RelativeTable& table) {
  return {table.packed, skewed_width(block.max_relative)};
}

// c[j][i] += vector of lane i . table row of (i, j). `b` is [dim][lane]. Lanes with consecutive centers share the
// skewed table; other lists take the same sums number by number, so that the bits do not tell which way was taken.
inline void add_table_dots(const Block& block, const Lanes& lanes, const Tile& tile, const RelativeTable& table,
                           std::int64_t dim, const float* b, float* c) {
  if (lanes.consecutive) {
    skewed_dots(skewed_table(block, table), tile.start, tile.count, dim, b, c);
    return;
  }
  for (std::int64_t i = 0; i < block.num_queries; ++i) {
    const KeyRange range = keys_of_lane(lanes, tile, i);
    constexpr std::int64_t kAtOnce = 8;  // independent sums hide the latency of one
    for (std::int64_t j = range.begin; j < range.end; j += kAtOnce) {
      const float* row[kAtOnce];
      float sum[kAtOnce];
      for (std::int64_t n = 0; n < kAtOnce; ++n) {
        const std::int64_t key = j + n < range.end ? j + n : range.end - 1;
        row[n] = table.rows + table_row(block, lanes, tile, i, key) * dim;
        sum[n] = 0.0F;
      }
      for (std::int64_t d = 0; d < dim; ++d) {
        const float factor = b[d * kLanes + i];
        for (std::int64_t n = 0; n < kAtOnce; ++n) sum[n] += row[n][d] * factor;
      }
      for (std::int64_t n = 0; n < kAtOnce && j + n < range.end; ++n) c[(j + n) * kLanes + i] += sum[n];
    }
  }
}

// c[e][i] += sum over j of weights[j][i] * table row of (i, j); `row_sum` holds dim numbers.
inline void add_table_rows(const Block& block, const Lanes& lanes, const Tile& tile, const RelativeTable& table,
                           std::int64_t dim, const float* weights, float* c, float* row_sum) {
  if (lanes.consecutive) {
    skewed_combine(skewed_table(block, table), tile.start, dim, tile.count, weights, c);
    return;
  }
  for (std::int64_t i = 0; i < block.num_queries; ++i) {
    const KeyRange range = keys_of_lane(lanes, tile, i);
    for (std::int64_t e = 0; e < dim; ++e) row_sum[e] = 0.0F;
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      const float weight = weights[j * kLanes + i];
      const float* row = table.rows + table_row(block, lanes, tile, i, j) * dim;
      for (std::int64_t e = 0; e < dim; ++e) row_sum[e] += row[e] * weight;
    }
    for (std::int64_t e = 0; e < dim; ++e) c[e * kLanes + i] += row_sum[e];
  }
}

// s[j][i] += slope * (position of j - position of i). The distance is a whole number, so that the same distance gives
// the same bits wherever the two stand.
inline void add_recency(const Block& block, const Lanes& lanes, const Tile& tile, float* s) {
  for (std::int64_t half = 0; half < kLanes; half += kWidth) {
    const Ints query = load(lanes.position + half);
    for (std::int64_t j = 0; j < tile.count; ++j) {
      float* at = s + j * kLanes + half;
      store(at, load(at) + __builtin_convertvector(splat(tile.position[j]) - query, Vec) * block.slope);
    }
  }
}

// s[j][i] = scaled score, minus infinity where j does not count for i. `q` is [dim][lane], already scaled.
inline void score_tile(const Block& block, const Lanes& lanes, const Tile& tile, const float* q, float* s) {
  dots(tile.keys, tile.count, 1, block.dim, q, kLanes, s, kLanes);
  if (block.key_table.rows != nullptr) add_table_dots(block, lanes, tile, block.key_table, block.dim, q, s);
  if (block.slope != 0.0F) add_recency(block, lanes, tile, s);
  const bool all_visible =
      !lanes.any_self && tile.first >= lanes.all_see_from && tile.first + tile.count <= lanes.all_see_to;
  if (!all_visible) hide_unseen(lanes, tile, s);
  if (block.repeats.first_word != nullptr) hide_repeats(block, lanes, tile, s);
}

// factors[j][i] = what dropout multiplies the probability of (i, j) with. The counter of the draw is (key position,
// query position, group in unit, 0), as in routing/ops/attend/attention_dropout.h.
inline void dropout_tile(const Block& block, const Lanes& lanes, const Tile& tile, float* factors) {
  for (std::int64_t j = 0; j < tile.count; ++j) {
    std::uint32_t words[4][kLanes];
    for (std::int64_t i = 0; i < kLanes; ++i) {
      words[0][i] = static_cast<std::uint32_t>(tile.position[j]);
      words[1][i] = static_cast<std::uint32_t>(lanes.position[i]);
      words[2][i] = block.group_in_unit;
      words[3][i] = 0;
    }
    auto key0 = static_cast<std::uint32_t>(block.dropout_key);
    auto key1 = static_cast<std::uint32_t>(block.dropout_key >> 32U);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      for (std::int64_t i = 0; i < kLanes; ++i) {
        const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * words[0][i];
        const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * words[2][i];
        words[0][i] = static_cast<std::uint32_t>(product1 >> 32U) ^ words[1][i] ^ key0;
        words[1][i] = static_cast<std::uint32_t>(product1);
        words[2][i] = static_cast<std::uint32_t>(product0 >> 32U) ^ words[3][i] ^ key1;
        words[3][i] = static_cast<std::uint32_t>(product0);
      }
      key0 += kPhiloxWeyl0;
      key1 += kPhiloxWeyl1;
    }
    for (std::int64_t i = 0; i < kLanes; ++i) {
      factors[j * kLanes + i] = words[0][i] >= block.drop_below ? block.keep_factor : 0.0F;
    }
  }
}

inline void multiply_tile(float* values, const float* factors, std::int64_t count) {
  for (std::int64_t n = 0; n < count * kLanes; n += kWidth) store(values + n, load(values + n) * load(factors + n));
}

// to[d][lane] = factor * row of the lane, zero in lanes without a query.
inline void pack_lanes(const Block& block, const float* base, std::int64_t stride, std::int64_t dim, float factor,
                       float* to) {
  for (std::int64_t i = 0; i < block.num_queries; ++i) prefetch_row(base + block.query_positions[i] * stride, dim);
  for (std::int64_t i = 0; i < kLanes; ++i) {
    if (i < block.num_queries) {
      const float* row = base + block.query_positions[i] * stride;
      for (std::int64_t d = 0; d < dim; ++d) to[d * kLanes + i] = factor * row[d];
    } else {
      for (std::int64_t d = 0; d < dim; ++d) to[d * kLanes + i] = 0.0F;
    }
  }
}

// Memory of a block, carved out of the scratch. Tiles keep kLanes rows of zeros before and behind them, for the
// diagonals of the backward pass.
struct Memory {
  float* q;              // [dim][lane], scaled
  float* o;              // [value_dim][lane], not yet divided by the sum
  float* row_sum;        // max(dim, value_dim)
  float* s;              // [key][lane] scores, then probabilities
  float* ds;             // [key][lane] their gradients
  float* factors;        // [key][lane] of dropout
  float* d_output;       // [value_dim][lane]
  float* dq;             // [dim][lane]
  float* q_rows;         // [lane][dim rounded up]
  float* d_output_rows;  // [lane][value_dim rounded up]
  float* sums;           // [key or diagonal][dim or value_dim rounded up]
};

inline std::int64_t round_up(std::int64_t dim) {
  return (dim + kLanes - 1) / kLanes * kLanes;
}

constexpr std::int64_t kPaddedTile = (kKeyTile + 2 * kLanes) * kLanes;

// The number of floats used; fills `memory` if it is given.
inline std::int64_t carve(std::int64_t dim, std::int64_t value_dim, float* scratch, Memory* memory) {
  const std::int64_t larger = round_up(dim > value_dim ? dim : value_dim);
  const std::int64_t sizes[] = {dim * kLanes,
                                value_dim * kLanes,
                                larger,
                                kPaddedTile,
                                kPaddedTile,
                                kKeyTile * kLanes,
                                value_dim * kLanes,
                                dim * kLanes,
                                kLanes * round_up(dim),
                                kLanes * round_up(value_dim),
                                (kKeyTile + kLanes) * larger};
  std::int64_t used[12] = {0};
  for (int part = 0; part < 11; ++part) used[part + 1] = used[part] + sizes[part];
  if (memory != nullptr) {
    *memory = {scratch + used[0],
               scratch + used[1],
               scratch + used[2],
               scratch + used[3] + kLanes * kLanes,
               scratch + used[4] + kLanes * kLanes,
               scratch + used[5],
               scratch + used[6],
               scratch + used[7],
               scratch + used[8],
               scratch + used[9],
               scratch + used[10]};
  }
  return used[11];
}

struct Softmax {
  float largest[kLanes];
  float total[kLanes];
};

// Folds the tile's scores into the running softmax: s becomes weights relative to the new largest score, and the sums
// of earlier tiles are brought to it.
inline void softmax_tile(const Block& block, const Tile& tile, Softmax& softmax, float* s, float* o) {
  const Vec hidden = splat(-__builtin_inff());
  for (std::int64_t half = 0; half < kLanes; half += kWidth) {
    const Vec before = load(softmax.largest + half);
    Vec largest = before;
    for (std::int64_t j = 0; j < tile.count; ++j) {
      const Vec score = load(s + j * kLanes + half);
      largest = largest > score ? largest : score;
    }
    const Vec shift = largest == hidden ? Vec{} : largest;
    Vec total = Vec{};
    for (std::int64_t j = 0; j < tile.count; ++j) {
      const Vec weight = exp_of(load(s + j * kLanes + half) - shift);
      store(s + j * kLanes + half, weight);
      total += weight;
    }
    const Vec fade = exp_of(before - shift);
    store(softmax.largest + half, largest);
    store(softmax.total + half, load(softmax.total + half) * fade + total);
    for (std::int64_t e = 0; e < block.value_dim; ++e) {
      store(o + e * kLanes + half, load(o + e * kLanes + half) * fade);
    }
  }
}

// Leaves the block's sums of weighted values in memory.o and the statistics of its softmax.
inline void attend_block(const Block& block, const Lanes& lanes, const Memory& memory, Softmax& softmax) {
  for (std::int64_t i = 0; i < kLanes; ++i) {
    softmax.largest[i] = -__builtin_inff();
    softmax.total[i] = 0.0F;
  }
  for (std::int64_t n = 0; n < block.value_dim * kLanes; ++n) memory.o[n] = 0.0F;
  for (std::int64_t begin = lanes.first_key / kKeyTile * kKeyTile; begin < lanes.last_key; begin += kKeyTile) {
    Tile tile;
    read_tile(block, lanes, begin, tile);
    score_tile(block, lanes, tile, memory.q, memory.s);
    softmax_tile(block, tile, softmax, memory.s, memory.o);
    if (block.dropout) {
      dropout_tile(block, lanes, tile, memory.factors);
      multiply_tile(memory.s, memory.factors, tile.count);
    }
    combine(tile.values, block.value_dim, tile.count, memory.s, memory.o);
    if (block.value_table.rows != nullptr) {
      add_table_rows(block, lanes, tile, block.value_table, block.value_dim, memory.s, memory.o, memory.row_sum);
    }
  }
}

inline float lse_of(const Softmax& softmax, std::int64_t i) {
  return softmax.total[i] == 0.0F ? -__builtin_inff() : softmax.largest[i] + __builtin_logf(softmax.total[i]);
}

inline std::int64_t scratch_size(std::int64_t dim, std::int64_t value_dim, std::int64_t /*max_relative*/) {
  return carve(dim, value_dim, nullptr, nullptr);
}
