// The forward pass of a block, and a way of its own for one query, as decoding has them. Included after
// attend_loops.inl.
//
// With a query in each lane all lanes but one would be empty. Here one number of the query meets several keys at once,
// and numbers of values lie in the lanes. Every sum is the same chain of multiply-adds over the same keys of the same
// tiles, so the bits are those of the block.

// a * b + c as vectors compute it: with one rounding where the level has such an instruction. Said outright, because
// the compiler may otherwise multiply several steps of a chain at once and add them with a second rounding.
inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// c[r] = chain over d of rows[r][d] * b[d]. Eight chains at once hide the latency of one.
inline void dots_of_one(const float* const* rows, std::int64_t num_rows, std::int64_t depth, const float* b, float* c) {
  constexpr std::int64_t kAtOnce = 8;
  for (std::int64_t first = 0; first < num_rows; first += kAtOnce) {
    const float* row[kAtOnce];
    float sum[kAtOnce];
    for (std::int64_t n = 0; n < kAtOnce; ++n) {
      row[n] = rows[first + n < num_rows ? first + n : num_rows - 1];
      sum[n] = 0.0F;
    }
    for (std::int64_t d = 0; d < depth; ++d) {
#pragma GCC unroll 8
      for (std::int64_t n = 0; n < kAtOnce; ++n) sum[n] = multiply_add(row[n][d], b[d], sum[n]);
    }
    for (std::int64_t n = 0; n < kAtOnce && first + n < num_rows; ++n) c[first + n] = sum[n];
  }
}

template <int kVectors>
inline void combine_columns(const float* const* rows, std::int64_t first, std::int64_t depth, const float* weights,
                            float* c) {
  Vec sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = Vec{};
  for (std::int64_t t = 0; t < depth; ++t) {
    const float* row = rows[t] + first;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] += load(row + v * kWidth) * weights[t];
  }
  for (int v = 0; v < kVectors; ++v) store(c + first + v * kWidth, load(c + first + v * kWidth) + sum[v]);
}

// c[e] += chain over t of rows[t][e] * weights[t], e < width
inline void combine_for_one(const float* const* rows, std::int64_t width, std::int64_t depth, const float* weights,
                            float* c) {
  std::int64_t e = 0;
  for (; e + 4 * kWidth <= width; e += 4 * kWidth) combine_columns<4>(rows, e, depth, weights, c);
  for (; e + kWidth <= width; e += kWidth) combine_columns<1>(rows, e, depth, weights, c);
  for (; e < width; ++e) {
    float sum = 0.0F;
    for (std::int64_t t = 0; t < depth; ++t) sum = multiply_add(rows[t][e], weights[t], sum);
    c[e] += sum;
  }
}

// The rows of a relative table that the query's keys have.
inline void table_rows_of_one(const Block& block, const Lanes& lanes, const Tile& tile, const RelativeTable& table,
                              std::int64_t dim, const float** rows) {
  for (std::int64_t j = 0; j < tile.count; ++j) rows[j] = table.rows + table_row(block, lanes, tile, 0, j) * dim;
}

// add_recency for one query.
inline void recency_of_one(const Block& block, const Lanes& lanes, const Tile& tile, float* s) {
  for (std::int64_t j = 0; j < tile.count; ++j) {
    s[j] = multiply_add(static_cast<float>(tile.position[j] - lanes.position[0]), block.slope, s[j]);
  }
}

struct OneSoftmax {
  float largest = -__builtin_inff();
  float total = 0.0F;
};

// softmax_tile for one query: s[key], o[value_dim].
inline void softmax_of_one(const Block& block, const Tile& tile, OneSoftmax& softmax, float* s, float* o) {
  float largest = softmax.largest;
  for (std::int64_t j = 0; j < tile.count; ++j) largest = largest > s[j] ? largest : s[j];
  const float shift = largest == -__builtin_inff() ? 0.0F : largest;
  for (std::int64_t j = 0; j < tile.count; j += kWidth) store(s + j, exp_of(load(s + j) - splat(shift)));
  float total = 0.0F;
  for (std::int64_t j = 0; j < tile.count; ++j) total += s[j];
  const float fade = exp_of(splat(softmax.largest - shift))[0];
  softmax.largest = largest;
  softmax.total = multiply_add(softmax.total, fade, total);
  for (std::int64_t e = 0; e < block.value_dim; ++e) o[e] *= fade;
}

inline void forward_one(const Block& block, const BlockResult& result, const Lanes& lanes, const Memory& memory) {
  const float* row = block.q + block.query_positions[0] * block.q_stride;
  for (std::int64_t d = 0; d < block.dim; ++d) memory.q[d] = block.scale * row[d];
  for (std::int64_t e = 0; e < block.value_dim; ++e) memory.o[e] = 0.0F;
  OneSoftmax softmax;
  for (std::int64_t begin = lanes.first_key / kKeyTile * kKeyTile; begin < lanes.last_key; begin += kKeyTile) {
    Tile tile;
    read_tile(block, lanes, begin, tile);
    const float* table_rows[kKeyTile];
    float* const s = memory.s;
    dots_of_one(tile.keys, tile.count, block.dim, memory.q, s);
    if (block.key_table.rows != nullptr) {
      table_rows_of_one(block, lanes, tile, block.key_table, block.dim, table_rows);
      dots_of_one(table_rows, tile.count, block.dim, memory.q, memory.ds);
      for (std::int64_t j = 0; j < tile.count; ++j) s[j] += memory.ds[j];
    }
    if (block.slope != 0.0F) recency_of_one(block, lanes, tile, s);
    const std::uint64_t repeats = repeats_of_lane(block, lanes, tile.first / kKeyTile, 0);
    for (std::int64_t j = 0; j < tile.count; ++j) {
      const std::int64_t rank = tile.first + j;
      const bool visible = rank >= lanes.from[0] && rank < lanes.to[0] && rank != lanes.self[0] &&
                           (repeats >> (rank % kKeyTile) & 1U) == 0;
      s[j] = visible ? s[j] : -__builtin_inff();
    }
    softmax_of_one(block, tile, softmax, s, memory.o);
    combine_for_one(tile.values, block.value_dim, tile.count, s, memory.o);
    if (block.value_table.rows != nullptr) {
      table_rows_of_one(block, lanes, tile, block.value_table, block.value_dim, table_rows);
      combine_for_one(table_rows, block.value_dim, tile.count, s, memory.o);
    }
  }
  const BlockResult::Row to = result.row(0, block.query_positions[0], block.value_dim);
  const float factor = softmax.total == 0.0F ? 0.0F : to.factor / softmax.total;
  for (std::int64_t e = 0; e < block.value_dim; ++e) to.output[e] = memory.o[e] * factor;
  *to.lse = softmax.total == 0.0F ? -__builtin_inff() : softmax.largest + __builtin_logf(softmax.total);
}

inline void forward(const Block& block, const BlockResult& result, float* scratch) {
  Memory memory;
  carve(block.dim, block.value_dim, scratch, &memory);
  Lanes lanes;
  read_lanes(block, lanes);
  if (block.num_queries == 1 && !block.dropout) {
    forward_one(block, result, lanes, memory);
    return;
  }
  pack_lanes(block, block.q, block.q_stride, block.dim, block.scale, memory.q);
  Softmax softmax;
  attend_block(block, lanes, memory, softmax);
  for (std::int64_t i = 0; i < block.num_queries; ++i) {
    const BlockResult::Row row = result.row(i, block.query_positions[i], block.value_dim);
    const float factor = softmax.total[i] == 0.0F ? 0.0F : row.factor / softmax.total[i];
    for (std::int64_t e = 0; e < block.value_dim; ++e) row.output[e] = memory.o[e * kLanes + i] * factor;
    *row.lse = lse_of(softmax, i);
  }
}
