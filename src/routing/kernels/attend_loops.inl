// One block of fused attention: its scores tile by tile, and its softmax. Included after attend_vectors.inl.
// Legend: i a lane (query of the block), j a key of the tile, d and e numbers of a key or value vector.

// What the tiles of a block share about its lanes. Lanes without a query see nothing.
struct Lanes {
  std::int32_t from[kLanes];
  std::int32_t to[kLanes];
  std::int32_t self[kLanes];
  std::int32_t center[kLanes];  // what relative offsets count from: a position, or a place less one
  std::int32_t position[kLanes];  // true positions
  std::int64_t first_key = 0;  // all visible keys of the block lie between these ranks
  std::int64_t last_key = 0;
  std::int64_t all_see_from = 0;  // every lane sees all keys between these, if there are any
  std::int64_t all_see_to = 0;
  bool any_self = false;
  bool consecutive = true;  // centers grow by one from lane to lane
};

inline void read_lanes(const Block& block, Lanes& lanes) {
  lanes.first_key = INT32_MAX;
  lanes.all_see_to = block.num_queries == kLanes ? INT32_MAX : 0;
  for (std::int64_t i = 0; i < kLanes; ++i) {
    if (i >= block.num_queries) {
      lanes.from[i] = lanes.to[i] = 0;
      lanes.self[i] = -1;
      lanes.center[i] = lanes.center[i - 1] + 1;
      lanes.position[i] = 0;
      continue;
    }
    const QueryView& view = block.views[i];
    lanes.from[i] = view.key_from;
    lanes.to[i] = view.key_to;
    lanes.self[i] = view.self_rank;
    lanes.position[i] = block.query_positions[i] + block.query_origin;
    lanes.center[i] = block.relative_by_rank ? view.place - 1 : lanes.position[i];
    if (i > 0 && lanes.center[i] != lanes.center[i - 1] + 1) lanes.consecutive = false;
    if (view.self_rank >= 0) lanes.any_self = true;
    if (view.key_from > lanes.all_see_from) lanes.all_see_from = view.key_from;
    if (view.key_to < lanes.all_see_to) lanes.all_see_to = view.key_to;
    if (view.key_from < view.key_to) {
      if (view.key_from < lanes.first_key) lanes.first_key = view.key_from;
      if (view.key_to > lanes.last_key) lanes.last_key = view.key_to;
    }
  }
  if (lanes.first_key > lanes.last_key) lanes.first_key = lanes.last_key;
  // Some keys that nobody sees cost less than products of odd sizes.
  lanes.first_key -= lanes.first_key % kRows;
}

// The keys of one tile that the block may see.
struct Tile {
  std::int64_t first = 0;  // rank of key 0
  std::int64_t count = 0;
  const float* keys[kKeyTile];
  const float* values[kKeyTile];
  std::int32_t position[kKeyTile];
  std::int32_t offset_base[kKeyTile];  // relative offset of lane i = this - center[i]
  std::int64_t start[kKeyTile];        // into the rows of a skewed table
};

inline void read_tile(const Block& block, const Lanes& lanes, std::int64_t tile_begin, Tile& tile) {
  const std::int64_t tile_end = tile_begin + kKeyTile;
  tile.first = tile_begin > lanes.first_key ? tile_begin : lanes.first_key;
  tile.count = (tile_end < lanes.last_key ? tile_end : lanes.last_key) - tile.first;
  const std::int64_t lowest = -block.max_relative;
  const std::int64_t highest = block.max_relative + kLanes - 1;
  for (std::int64_t j = 0; j < tile.count; ++j) {
    const std::int32_t position = block.key_positions[tile.first + j];
    tile.position[j] = position;
    const std::int64_t row = block.key_rows[tile.first + j];
    tile.keys[j] = block.k + row * block.k_stride;
    tile.values[j] = block.v + row * block.v_stride;
    prefetch_row(tile.keys[j], block.dim);
    prefetch_row(tile.values[j], block.value_dim);
    tile.offset_base[j] = block.relative_by_rank ? static_cast<std::int32_t>(tile.first + j) : position;
    std::int64_t offset = tile.offset_base[j] - lanes.center[0];
    offset = offset < lowest ? lowest : (offset > highest ? highest : offset);
    tile.start[j] = highest - offset;
  }
}

// Row of the relative tables for lane i and key j.
inline std::int64_t table_row(const Block& block, const Lanes& lanes, const Tile& tile, std::int64_t i,
                              std::int64_t j) {
  std::int64_t offset = std::int64_t{tile.offset_base[j]} - lanes.center[i];
  offset = offset < -block.max_relative ? -block.max_relative : offset;
  offset = offset > block.max_relative ? block.max_relative : offset;
  return offset + block.max_relative;
}

// Keys of the tile that lane i may see, as a range of j; it may hold the lane's own key.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
inline KeyRange keys_of_lane(const Lanes& lanes, const Tile& tile, std::int64_t i) {
  KeyRange range{lanes.from[i] - tile.first, lanes.to[i] - tile.first};
  if (range.begin < 0) range.begin = 0;
  if (range.end > tile.count) range.end = tile.count;
  return range;
}

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

// s[j][i] = scaled score, minus infinity where i does not see j. `q` is [dim][lane], already scaled.
inline void score_tile(const Block& block, const Lanes& lanes, const Tile& tile, const float* q, float* s) {
  dots(tile.keys, tile.count, 1, block.dim, q, kLanes, s, kLanes);
  if (block.key_table.rows != nullptr) add_table_dots(block, lanes, tile, block.key_table, block.dim, q, s);
  if (block.slope != 0.0F) add_recency(block, lanes, tile, s);
  const bool all_visible =
      !lanes.any_self && tile.first >= lanes.all_see_from && tile.first + tile.count <= lanes.all_see_to;
  if (all_visible) return;
  const Vec hidden = splat(-__builtin_inff());
  for (std::int64_t half = 0; half < kLanes; half += kWidth) {
    const Ints from = load(lanes.from + half);
    const Ints to = load(lanes.to + half);
    const Ints self = load(lanes.self + half);
    for (std::int64_t j = 0; j < tile.count; ++j) {
      const Ints rank = splat(static_cast<std::int32_t>(tile.first + j));
      const Ints visible = (rank >= from) & (rank < to) & (rank != self);
      float* at = s + j * kLanes + half;
      store(at, visible ? load(at) : hidden);
    }
  }
}

// factors[j][i] = what dropout multiplies the probability of (i, j) with. The counter of the draw is (key position,
// query position, group in unit, 0), as in routing/ops/attention_dropout.h.
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
