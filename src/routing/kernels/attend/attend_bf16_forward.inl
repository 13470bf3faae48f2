// Relative tables and the forward pass of one block of fused attention in bfloat16. Included after
// attend_bf16_one.inl.
//
// What a query has to do with the relative tables depends on offsets, not on keys: its products with the rows of the
// key table are computed once per block and looked up for every key; the probabilities of its keys are summed by offset
// and meet the value table once, at the end.

// scores[i][x] = rows_i . row x of the table, for the rows that the block needs.
inline void score_table(const Queries& queries, const Half* rows, std::int64_t dim, const PackedTable& table,
                        float* scores) {
  const Strip& last = queries.strips[queries.num_strips - 1];
  multiply<false>({.c = scores + queries.table_from,
                   .c_stride = table.rows,
                   .a = rows,
                   .a_stride = round_up(dim, kStep),
                   .b = table.columns + queries.table_from,
                   .b_stride = table.rows,
                   .rows = last.begin + last.rows,
                   .columns = queries.table_to - queries.table_from,
                   .depth = summed(dim)});
}

// The rows of the relative tables that 16 neighbouring keys have for one query.
struct TableLanes {
  std::int64_t run = -1;                    // they are rows run … run + 15, none of them clipped
  __m512i offset = _mm512_setzero_si512();  // otherwise, row - max before clipping
};

inline TableLanes table_lanes(const Block& block, const Queries& queries, const Tile& tile, std::int64_t i,
                              std::int64_t j) {
  TableLanes lanes;
  const std::int64_t row = std::int64_t{tile.base[j]} - queries.center[i] + block.max_relative;
  if (tile.in_order[j / kVector] && row >= 0 && row + kVector <= 2 * block.max_relative + 1 &&
      row >= queries.table_from && row + kVector <= queries.table_to) {
    lanes.run = row;
    return lanes;
  }
  lanes.offset = _mm512_sub_epi32(_mm512_load_si512(tile.base + j), _mm512_set1_epi32(queries.center[i]));
  return lanes;
}

// scores[row of the key] for 16 keys; `scores` are those of one query.
inline __m512 look_up(const Block& block, const Queries& queries, const TableLanes& lanes, const float* scores) {
  if (lanes.run >= 0) return _mm512_loadu_ps(scores + lanes.run);
  const auto max = static_cast<int>(block.max_relative);
  const auto first = static_cast<int>(queries.table_from);
  const auto last = static_cast<int>(queries.table_to - 1 < 2 * max ? queries.table_to - 1 : 2 * max);
  // Keys that the query does not see may have rows that were not computed.
  __m512i row = _mm512_add_epi32(lanes.offset, _mm512_set1_epi32(max));
  row = _mm512_min_epi32(_mm512_max_epi32(row, _mm512_set1_epi32(first)), _mm512_set1_epi32(last));
  const __m512i row0 = _mm512_broadcastd_epi32(_mm512_castsi512_si128(row));
  if (_mm512_cmpeq_epi32_mask(row, row0) == 0xFFFF) {
    return _mm512_set1_ps(scores[_mm_cvtsi128_si32(_mm512_castsi512_si128(row))]);
  }
  return _mm512_i32gather_ps(row, scores, 4);
}

// sums[row of the key] += weights for 16 keys. Only clipped keys share a row; they are added up first.
inline void add_by_row(const Block& block, const TableLanes& lanes, __m512 weights, float* sums) {
  if (lanes.run >= 0) {
    _mm512_storeu_ps(sums + lanes.run, _mm512_add_ps(_mm512_loadu_ps(sums + lanes.run), weights));
    return;
  }
  const auto max = static_cast<int>(block.max_relative);
  const __mmask16 some = _mm512_cmpneq_ps_mask(weights, _mm512_setzero_ps());
  if (max == 0) {
    sums[0] += _mm512_reduce_add_ps(weights);
    return;
  }
  const __mmask16 low = _mm512_mask_cmple_epi32_mask(some, lanes.offset, _mm512_set1_epi32(-max));
  const __mmask16 high = _mm512_mask_cmpge_epi32_mask(some, lanes.offset, _mm512_set1_epi32(max));
  if (low != 0) sums[0] += _mm512_mask_reduce_add_ps(low, weights);
  if (high != 0) sums[2 * block.max_relative] += _mm512_mask_reduce_add_ps(high, weights);
  const auto rest = static_cast<__mmask16>(some & ~(low | high));
  if (rest == 0) return;
  const __m512i row = _mm512_add_epi32(lanes.offset, _mm512_set1_epi32(max));
  const __m512 before = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), rest, row, sums, 4);
  _mm512_mask_i32scatter_ps(sums, rest, row, _mm512_add_ps(before, weights), 4);
}

inline void clear_sums(const Queries& queries, std::int64_t table_rows, float* sums) {
  const std::int64_t rows = queries.strips[0].rows == 1 ? 1 : queries.num_strips * kStep;
  for (std::int64_t i = 0; i < rows; ++i) {
    clear_floats(sums + i * table_rows + queries.table_from, queries.table_to - queries.table_from);
  }
}

// rounded[i][x - table_from] of sums[i][x] for all rows of one strip, with or without a query; of a single query for
// its own.
inline void round_sums(const Queries& queries, const Strip& strip, const float* sums, std::int64_t table_rows,
                       Half* rounded) {
  const std::int64_t width = queries.table_to - queries.table_from;
  const std::int64_t rows = strip.rows == 1 ? 1 : kStep;
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* from = sums + (strip.begin + i) * table_rows + queries.table_from;
    for (std::int64_t x = 0; x < width; x += kStep) {
      store_halves(rounded + i * width + x, _mm512_loadu_ps(from + x), _mm512_loadu_ps(from + x + kVector));
    }
  }
}

// to[i] += sum over x of sums[i][x] * row x of the table
inline void add_table_product(const Queries& queries, const Strip& strip, const PackedTable& table, const Half* rounded,
                              std::int64_t dim, float* to) {
  const std::int64_t padded = round_up(dim, kStep);
  const std::int64_t width = queries.table_to - queries.table_from;
  multiply<true>({.c = to + strip.begin * padded,
                  .c_stride = padded,
                  .a = rounded,
                  .a_stride = width,
                  .b = table.pairs + queries.table_from / 2 * padded,
                  .b_stride = padded,
                  .rows = strip.rows,
                  .columns = computed(dim),
                  .depth = width});
}

// s[i][j] = q_i . k_j for one strip and the columns it sees.
inline void score_strip(const Block& block, const Strip& strip, const Tile& tile, const Columns& columns,
                        const Memory& memory) {
  const std::int64_t padded = round_up(block.dim, kStep);
  multiply<false>({.c = memory.s + columns.from,
                   .c_stride = kKeyTile,
                   .a = memory.q_rows + strip.begin * padded,
                   .a_stride = padded,
                   .b = memory.k_columns + place_of(tile.begin) * kKeyTile * padded / 2 + columns.from,
                   .b_stride = kKeyTile,
                   .rows = strip.rows,
                   .columns = columns.to - columns.from,
                   .depth = summed(block.dim)});
}

struct Tables {
  PackedTable key = {}, value = {};
};
inline std::int64_t table_limit(const Block& block) {
  return block.key_table.rows == nullptr && block.value_table.rows == nullptr ? -1 : block.max_relative;
}
inline Tables tables_of(const Block& block) {
  return {packed_table(block.key_table.packed, block.max_relative, block.dim),
          packed_table(block.value_table.packed, block.max_relative, block.value_dim)};
}

// What recency makes of the logits, to base 2, of 16 keys for one query.
inline __m512 with_recency(const Block& block, const Queries& queries, const Tile& tile, std::int64_t i, std::int64_t j,
                           __m512 logits) {
  const __m512i offset = _mm512_sub_epi32(_mm512_load_si512(tile.position + j), _mm512_set1_epi32(queries.position[i]));
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(offset), _mm512_set1_ps(block.slope * kLog2E), logits);
}

// What the loops over pairs have to do, known when they are compiled.
template <bool kTables, bool kRecency, bool kDropout>
struct PairKind {
  static constexpr bool tables = kTables;
  static constexpr bool recency = kRecency;
  static constexpr bool dropout = kDropout;
};

// body(PairKind of the block)
template <class Body>
inline void with_kind(const Block& block, const Tables& tables, const Body& body) {
  const bool relative = tables.key.rows > 0 || tables.value.rows > 0;
  const bool recent = block.slope != 0.0F;
  if (block.dropout) {
    if (relative) return recent ? body(PairKind<true, true, true>{}) : body(PairKind<true, false, true>{});
    return recent ? body(PairKind<false, true, true>{}) : body(PairKind<false, false, true>{});
  }
  if (relative) return recent ? body(PairKind<true, true, false>{}) : body(PairKind<true, false, false>{});
  return recent ? body(PairKind<false, true, false>{}) : body(PairKind<false, false, false>{});
}

// One strip against one tile: folds its scores into the running softmax and leaves the weights in memory.p.
template <class Kind>
inline void softmax_strip(const Block& block, const Queries& queries, const Strip& strip, const Tile& tile,
                          const Columns& columns, const Tables& tables, const Memory& memory) {
  const bool key_table = Kind::tables && tables.key.rows > 0;
  const bool value_table = Kind::tables && tables.value.rows > 0;
  const __m512 hidden = _mm512_set1_ps(-__builtin_inff());
  const __m512 factor = _mm512_set1_ps(block.scale * kLog2E);
  std::uint64_t visible[kStep];
  alignas(64) float row_largest[kStep] = {};
  for (std::int64_t r = 0; r < strip.rows; ++r) {
    const std::int64_t i = strip.begin + r;
    visible[r] = columns.all_visible ? ~std::uint64_t{0} : visible_keys(block, queries, tile, i);
    float* row = memory.s + r * kKeyTile;
    __m512 largest = hidden;
    for (std::int64_t j = columns.step_from; j < columns.step_to; j += kVector) {
      const auto mask = static_cast<__mmask16>(visible[r] >> j);
      __m512 score = _mm512_load_ps(row + j);
      if (key_table) {
        score = _mm512_add_ps(score, look_up(block, queries, table_lanes(block, queries, tile, i, j),
                                             memory.key_scores + i * tables.key.rows));
      }
      if (!Kind::recency) {
        score = _mm512_mask_mul_ps(hidden, mask, score, factor);
      } else {
        score = with_recency(block, queries, tile, i, j, _mm512_mul_ps(score, factor));
        score = _mm512_mask_mov_ps(hidden, mask, score);
      }
      _mm512_store_ps(row + j, score);
      largest = _mm512_max_ps(largest, score);
    }
    row_largest[r] = _mm512_reduce_max_ps(largest);
  }
  alignas(64) float shift[kStep];
  alignas(64) float fade[kStep];
  for (std::int64_t r = 0; r < strip.rows; r += kVector) {
    const __m512 before = _mm512_load_ps(memory.largest + strip.begin + r);
    // Of a single row not through memory, where a vector would wait for the number to arrive.
    const __m512 largest = strip.rows == 1 ? _mm512_set1_ps(row_largest[0]) : _mm512_load_ps(row_largest + r);
    const __m512 now = _mm512_max_ps(before, largest);
    const __mmask16 none = _mm512_cmpeq_ps_mask(now, hidden);
    const __m512 by = _mm512_mask_blend_ps(none, now, _mm512_setzero_ps());
    _mm512_store_ps(memory.largest + strip.begin + r, now);
    _mm512_store_ps(shift + r, by);
    // Two equal numbers, also two infinite ones, leave the sums as they are.
    const __mmask16 same = _mm512_cmpeq_ps_mask(before, now);
    _mm512_store_ps(fade + r, _mm512_mask_blend_ps(same, exp2_of(_mm512_sub_ps(before, by)), _mm512_set1_ps(1.0F)));
  }
  const std::int64_t padded = round_up(block.value_dim, kStep);
  for (std::int64_t r = 0; r < strip.rows; ++r) {
    const std::int64_t i = strip.begin + r;
    __m512 total = _mm512_load_ps(memory.total + i * kVector);
    if (fade[r] != 1.0F) {
      const __m512 by = _mm512_set1_ps(fade[r]);
      total = _mm512_mul_ps(total, by);
      float* o = memory.o + i * padded;
      for (std::int64_t e = 0; e < padded; e += kVector)
        _mm512_store_ps(o + e, _mm512_mul_ps(_mm512_load_ps(o + e), by));
      if (value_table) {
        float* sums = memory.weight_sums + i * tables.value.rows;
        for (std::int64_t x = queries.table_from; x < queries.table_to; x += kVector) {
          _mm512_storeu_ps(sums + x, _mm512_mul_ps(_mm512_loadu_ps(sums + x), by));
        }
      }
    }
    const __m512 by = _mm512_set1_ps(shift[r]);
    const float* row = memory.s + r * kKeyTile;
    const std::uint64_t kept =
        Kind::dropout && visible[r] != 0 && i < block.num_queries ? kept_in_tile(block, tile, columns, i) : 0;
    for (std::int64_t j = columns.step_from; j < columns.step_to; j += kStep) {
      __m512 weight[2];
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const std::int64_t at = j + half * kVector;
        weight[half] = exp2_of(_mm512_sub_ps(_mm512_load_ps(row + at), by));
        total = _mm512_add_ps(total, weight[half]);
        if (Kind::dropout) {
          weight[half] =
              _mm512_maskz_mul_ps(static_cast<__mmask16>(kept >> at), weight[half], _mm512_set1_ps(block.keep_factor));
        }
        if (value_table) {
          add_by_row(block, table_lanes(block, queries, tile, i, at), weight[half],
                     memory.weight_sums + i * tables.value.rows);
        }
      }
      store_halves(memory.p + r * kKeyTile + j, weight[0], weight[1]);
    }
    _mm512_store_ps(memory.total + i * kVector, total);
  }
}

// A tile as a query that is alone reads it.
template <class Number>
struct AloneTile {
  Tile tile;
  Columns columns;
  const Number* rows[kKeyTile];
  const Number* value_rows[kKeyTile];  // where values have rows of their own
};

// Finds the next tile from rank `begin` on that the query sees, and asks for what comes after it. Returns where the one
// after begins, or 0 if there was none.
template <class Number>
inline std::int64_t find_tile(const Block& block, const Number* k, const Number* v, const Queries& queries,
                              std::int64_t begin, std::int64_t behind, AloneTile<Number>& found) {
  for (; begin < queries.last_key; begin += kKeyTile) {
    Tile& tile = found.tile;
    read_tile(block, begin, tile);
    found.columns = columns_of(queries.strips[0], tile);
    const Columns& columns = found.columns;
    if (columns.from >= columns.to) continue;
    const std::int32_t* rows = block.key_rows + begin;
    find_rows(k, block.k_stride, rows, columns.step_from, columns.step_to, tile.count, found.rows);
    fetch_following(block, k, block.k_stride, tile, behind < 0 ? block.dim : behind + block.value_dim);
    if (behind < 0) {
      find_rows(v, block.v_stride, rows, columns.step_from, columns.step_to, tile.count, found.value_rows);
      fetch_following(block, v, block.v_stride, tile, block.value_dim);
    }
    return begin + kKeyTile;
  }
  return 0;
}

// All tiles of a query that is alone. Its weighted values are one chain of sums that the processor waits for, so the
// scores of a tile are made between the sums of the tile before.
template <class Number>
inline void attend_alone(const Block& block, const Number* k, const Number* v, const Queries& queries,
                         const Tables& tables, const Memory& memory) {
  // A value behind its key is found with it.
  const std::int64_t behind = values_behind_keys(k, block.k_stride, v, block.v_stride);
  AloneTile<Number> tiles[2];
  Memory scores[2] = {memory, memory};
  scores[1].s += kKeyTile;
  std::int64_t begin = find_tile(block, k, v, queries, queries.first_key / kKeyTile * kKeyTile, behind, tiles[0]);
  if (begin == 0) return;
  for (std::int64_t j = tiles[0].columns.from; j < tiles[0].columns.to; j += kVector) {
    score_sixteen(tiles[0].rows, block.dim, memory.q_rows, j, scores[0].s);
  }
  for (int now = 0; begin != 0; now = 1 - now) {
    const AloneTile<Number>& one = tiles[now];
    AloneTile<Number>& next = tiles[1 - now];
    begin = find_tile(block, k, v, queries, begin, behind, next);
    with_kind(block, tables, [&](auto kind) {
      softmax_strip<decltype(kind)>(block, queries, queries.strips[0], one.tile, one.columns, tables, scores[now]);
    });
    const Number* const* values = behind < 0 ? one.value_rows : one.rows;
    const std::int64_t end = one.columns.step_to < one.tile.count ? one.columns.step_to : one.tile.count;
    for (std::int64_t j = 0; j < kKeyTile; j += kVector) {
      if (begin != 0 && j >= next.columns.from && j < next.columns.to) {
        score_sixteen(next.rows, block.dim, memory.q_rows, j, scores[1 - now].s);
      }
      const std::int64_t from = j < one.columns.step_from ? one.columns.step_from : j;
      const std::int64_t to = j + kVector < end ? j + kVector : end;
      if (from < to) combine_one(values, behind < 0 ? 0 : behind, block.value_dim, memory.p, from, to, memory.o);
    }
  }
}

// The tile is gathered and packed, unless an earlier block of the run has done so.
inline void pack_tile(const Block& block, const Tile& tile, const Memory& memory) {
  const std::int64_t place = place_of(tile.begin);
  if (memory.ring->begin[place] == tile.begin) return;
  memory.ring->begin[place] = tile.begin;
  const std::int64_t padded = round_up(block.dim, kStep);
  const std::int64_t value_padded = round_up(block.value_dim, kStep);
  const std::int64_t count = round_up(tile.count, kStep);
  const std::int32_t* rows = block.key_rows + tile.begin;
  pack_rows(block.k, block.k_halves, block.k_stride, rows, tile.count, block.dim, memory.k_rows);
  pack_rows(block.v, block.v_halves, block.v_stride, rows, tile.count, block.value_dim, memory.v_rows);
  pack_columns(memory.k_rows, count, padded, memory.k_columns + place * kKeyTile * padded / 2, kKeyTile);
  pack_pairs(memory.v_rows, count, value_padded, memory.v_pairs + place * kKeyTile / 2 * value_padded);
}

inline void attend_tile(const Block& block, const Queries& queries, const Tile& tile, const Tables& tables,
                        const Memory& memory) {
  const std::int64_t value_padded = round_up(block.value_dim, kStep);
  pack_tile(block, tile, memory);
  for (std::int64_t s = 0; s < queries.num_strips; ++s) {
    const Strip& strip = queries.strips[s];
    const Columns columns = columns_of(strip, tile);
    if (columns.from >= columns.to) continue;
    score_strip(block, strip, tile, columns, memory);
    with_kind(block, tables,
              [&](auto kind) { softmax_strip<decltype(kind)>(block, queries, strip, tile, columns, tables, memory); });
    multiply<true>({.c = memory.o + strip.begin * value_padded,
                    .c_stride = value_padded,
                    .a = memory.p + columns.step_from,
                    .a_stride = kKeyTile,
                    .b = memory.v_pairs + (place_of(tile.begin) * kKeyTile + columns.step_from) / 2 * value_padded,
                    .b_stride = value_padded,
                    .rows = strip.rows,
                    .columns = computed(block.value_dim),
                    .depth = columns.step_to - columns.step_from});
  }
}

// Leaves the block's sums of weighted values in memory.o and the statistics of its softmax in memory.
inline void attend_block(const Block& block, const Queries& queries, const Tables& tables, const Memory& memory) {
  const bool alone = kChainsPairs && queries.strips[0].rows == 1;
  const std::int64_t rows = alone ? 1 : queries.num_strips * kStep;
  clear_floats(memory.o, rows * round_up(block.value_dim, kStep));
  clear_floats(memory.total, rows * kVector);
  for (std::int64_t i = 0; i < round_up(rows, kVector); ++i) memory.largest[i] = -__builtin_inff();
  if (tables.key.rows > 0) score_table(queries, memory.q_rows, block.dim, tables.key, memory.key_scores);
  if (tables.value.rows > 0) clear_sums(queries, tables.value.rows, memory.weight_sums);
  if (alone && block.k_halves != nullptr) {
    attend_alone(block, block.k_halves, block.v_halves, queries, tables, memory);
  } else if (alone) {
    attend_alone(block, block.k, block.v, queries, tables, memory);
  }
  for (std::int64_t begin = queries.first_key / kKeyTile * kKeyTile; !alone && begin < queries.last_key;
       begin += kKeyTile) {
    Tile tile;
    read_tile(block, begin, tile);
    attend_tile(block, queries, tile, tables, memory);
  }
  if (tables.value.rows == 0) return;
  for (std::int64_t s = 0; s < queries.num_strips; ++s) {
    round_sums(queries, queries.strips[s], memory.weight_sums, tables.value.rows, memory.sums_rounded);
    add_table_product(queries, queries.strips[s], tables.value, memory.sums_rounded, block.value_dim, memory.o);
  }
}

inline float total_of(const Memory& memory, std::int64_t i) {
  return _mm512_reduce_add_ps(_mm512_load_ps(memory.total + i * kVector));
}
inline float lse_of(const Memory& memory, std::int64_t i, float total) {
  return total == 0.0F ? -__builtin_inff() : memory.largest[i] * kLn2 + __builtin_logf(total);
}

inline void forward(const Block& block, const BlockResult& result, float* scratch) {
  [[maybe_unused]] const Session session;
  Memory memory;
  carve(block.dim, block.value_dim, table_limit(block), scratch, memory);
  Queries queries;
  read_queries(block, /*one_row=*/true, queries);
  if (block.first_of_run) memory.ring->clear();
  pack_rows(block.q, block.q_halves, block.q_stride, block.query_positions, block.num_queries, block.dim,
            memory.q_rows);
  attend_block(block, queries, tables_of(block), memory);
  const std::int64_t padded = round_up(block.value_dim, kStep);
  for (std::int64_t i = 0; i < block.num_queries; ++i) {
    const BlockResult::Row row = result.row(i, block.query_positions[i], block.value_dim);
    const float total = total_of(memory, i);
    const __m512 factor = _mm512_set1_ps(total == 0.0F ? 0.0F : row.factor / total);
    const float* o = memory.o + i * padded;
    for (std::int64_t e = 0; e < block.value_dim; e += kVector) {
      _mm512_mask_storeu_ps(row.output + e, first_lanes(block.value_dim - e),
                            _mm512_mul_ps(_mm512_load_ps(o + e), factor));
    }
    *row.lse = lse_of(memory, i, total);
  }
}
