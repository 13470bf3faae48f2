// The backward pass of one block of fused attention in bfloat16. Included after attend_bf16_forward.inl. The formulas
// stand in attend_backward.inl.
//
// Probabilities and their gradients of one tile are kept for all strips, transposed, so that the gradients of keys and
// values are one product each that sums over all queries of the block.

struct RowGradient {
  float shift[kQueries];  // log2 of what the exponentials of the scores are divided by
  float correction[kQueries];
  float weight[kQueries];  // d_output is multiplied with it
};

// Of a row that was rounded, so that rounding cancels in the gradients of the scores.
inline float dot_rows(const Half* a, const float* b, std::int64_t count) {
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t e = 0; e < count; e += kVector) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + e));
    const __m512 wide = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    sum = _mm512_fmadd_ps(wide, _mm512_maskz_loadu_ps(first_lanes(count - e), b + e), sum);
  }
  return _mm512_reduce_add_ps(sum);
}

// With a softmax per group, its statistics and output are those that attend_block just left in memory.
inline void read_row_gradients(const Block& block, const BlockGradient& gradient, const Memory& memory,
                               RowGradient& rows) {
  const std::int64_t padded = round_up(block.value_dim, kStep);
  for (std::int64_t i = 0; i < kQueries; ++i) {
    rows.shift[i] = rows.correction[i] = rows.weight[i] = 0.0F;
    if (i >= block.num_queries) continue;
    if (i + kAhead < block.num_queries) {
      fetch_row(gradient.output + block.query_positions[i + kAhead] * gradient.output_stride, block.value_dim);
    }
    const std::int64_t position = block.query_positions[i];
    const float lse = gradient.lse[position];
    if (lse == -__builtin_inff()) continue;
    rows.weight[i] = gradient.output_weight == nullptr ? 1.0F : gradient.output_weight[position];
    const Half* d_output = memory.d_rows + i * padded;
    const float d_lse = gradient.d_lse[position];
    if (!gradient.own_softmax) {
      rows.shift[i] = lse * kLog2E;
      rows.correction[i] =
          dot_rows(d_output, gradient.output + position * gradient.output_stride, block.value_dim) - d_lse;
      continue;
    }
    const float total = total_of(memory, i);
    if (total == 0.0F) continue;
    const float own_lse = lse_of(memory, i, total);
    rows.shift[i] = own_lse * kLog2E;
    rows.correction[i] = rows.weight[i] * dot_rows(d_output, memory.o + i * padded, block.value_dim) / total -
                         d_lse * __builtin_expf(own_lse - lse);
  }
}

// Probabilities after dropout to memory.p, gradients of the scores to memory.ds, for one strip and tile.
template <class Kind>
inline void differentiate_strip(const Block& block, const Queries& queries, const Strip& strip, const Tile& tile,
                                const Columns& columns, const Tables& tables, const RowGradient& rows,
                                const Memory& memory) {
  const bool key_table = Kind::tables && tables.key.rows > 0;
  const bool value_table = Kind::tables && tables.value.rows > 0;
  const __m512 factor = _mm512_set1_ps(block.scale * kLog2E);
  for (std::int64_t r = 0; r < kStep; ++r) {
    const std::int64_t i = strip.begin + r;
    const std::uint64_t visible = columns.all_visible ? ~std::uint64_t{0} : visible_keys(block, queries, tile, i);
    if (visible == 0) {
      clear_halves(memory.p + r * kKeyTile + columns.step_from, columns.step_to - columns.step_from);
      clear_halves(memory.ds + r * kKeyTile + columns.step_from, columns.step_to - columns.step_from);
      continue;
    }
    const __m512 shift = _mm512_set1_ps(rows.shift[i]);
    const __m512 correction = _mm512_set1_ps(rows.correction[i]);
    const __m512 weight = _mm512_set1_ps(rows.weight[i]);
    const std::uint64_t kept = Kind::dropout ? kept_in_tile(block, tile, columns, i) : 0;
    for (std::int64_t j = columns.step_from; j < columns.step_to; j += kStep) {
      __m512 p[2];
      __m512 ds[2];
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const std::int64_t at = j + half * kVector;
        const auto mask = static_cast<__mmask16>(visible >> at);
        TableLanes lanes;
        if (Kind::tables) lanes = table_lanes(block, queries, tile, i, at);
        __m512 score = _mm512_load_ps(memory.s + r * kKeyTile + at);
        if (key_table) {
          score = _mm512_add_ps(score, look_up(block, queries, lanes, memory.key_scores + i * tables.key.rows));
        }
        __m512 dp = _mm512_load_ps(memory.dp + r * kKeyTile + at);
        if (value_table) {
          dp = _mm512_add_ps(dp, look_up(block, queries, lanes, memory.value_scores + i * tables.value.rows));
        }
        dp = _mm512_mul_ps(dp, weight);
        __m512 exponent = _mm512_fmsub_ps(score, factor, shift);
        if (Kind::recency) exponent = with_recency(block, queries, tile, i, at, exponent);
        const __m512 probability = _mm512_maskz_mov_ps(mask, exp2_of(exponent));
        p[half] = _mm512_mul_ps(probability, weight);
        if (Kind::dropout) {
          const auto keeps = static_cast<__mmask16>(kept >> at);
          const __m512 keep_factor = _mm512_set1_ps(block.keep_factor);
          p[half] = _mm512_maskz_mul_ps(keeps, p[half], keep_factor);
          dp = _mm512_maskz_mul_ps(keeps, dp, keep_factor);
        }
        ds[half] = _mm512_maskz_mul_ps(mask, probability, _mm512_sub_ps(dp, correction));
        if (key_table) add_by_row(block, lanes, ds[half], memory.ds_sums + i * tables.key.rows);
        if (value_table) add_by_row(block, lanes, p[half], memory.weight_sums + i * tables.value.rows);
      }
      store_halves(memory.p + r * kKeyTile + j, p[0], p[1]);
      store_halves(memory.ds + r * kKeyTile + j, ds[0], ds[1]);
    }
  }
}

// rows[positions[n]] += factor * sums[n]; a row that was never written is written.
inline void add_to_rows(const GradientRows& rows, const std::int32_t* positions, std::int64_t count, const float* sums,
                        std::int64_t dim, float factor) {
  const std::int64_t padded = round_up(dim, kStep);
  const __m512 by = _mm512_set1_ps(factor);
  for (std::int64_t n = 0; n < count; ++n) {
    if (n + kAhead < count) fetch_row_to_write(rows.base + positions[n + kAhead] * rows.stride, dim);
    float* row = rows.base + positions[n] * rows.stride;
    std::uint8_t& written = rows.written[positions[n]];
    for (std::int64_t d = 0; d < dim; d += kVector) {
      const __mmask16 lanes = first_lanes(dim - d);
      const __m512 before = written != 0 ? _mm512_maskz_loadu_ps(lanes, row + d) : _mm512_setzero_ps();
      _mm512_mask_storeu_ps(row + d, lanes, _mm512_fmadd_ps(_mm512_load_ps(sums + n * padded + d), by, before));
    }
    written = 1;
  }
}

// d_table[x] += factor * sum over queries of sums[i][x] * vectors_i
inline void add_to_table(const Block& block, const Queries& queries, const float* sums, std::int64_t table_rows,
                         const Pair* vector_pairs, std::int64_t dim, float factor, const Memory& memory,
                         float* d_table) {
  const std::int64_t padded = round_up(dim, kStep);
  const std::int64_t width = queries.table_to - queries.table_from;
  Half* by_row = memory.sums_by_row;
  for (std::int64_t s = 0; s < queries.num_strips; ++s) {
    round_sums(queries, queries.strips[s], sums, table_rows, memory.sums_rounded);
    transpose_halves(memory.sums_rounded, width, width, by_row + s * kStep, kQueries);
  }
  multiply<false>({.c = memory.products,
                   .c_stride = padded,
                   .a = by_row,
                   .a_stride = kQueries,
                   .b = vector_pairs,
                   .b_stride = padded,
                   .rows = width,
                   .columns = computed(dim),
                   .depth = queries.num_strips * kStep});
  const __m512 by = _mm512_set1_ps(factor);
  for (std::int64_t x = queries.table_from; x < queries.table_to && x <= 2 * block.max_relative; ++x) {
    float* row = d_table + x * dim;
    const float* sum = memory.products + (x - queries.table_from) * padded;
    for (std::int64_t d = 0; d < dim; d += kVector) {
      const __mmask16 lanes = first_lanes(dim - d);
      _mm512_mask_storeu_ps(row + d, lanes,
                            _mm512_fmadd_ps(_mm512_load_ps(sum + d), by, _mm512_maskz_loadu_ps(lanes, row + d)));
    }
  }
}

// The gradients of one tile: keys and values get theirs, queries collect in memory.dq.
inline void differentiate_tile(const Block& block, const Queries& queries, const Tile& tile, const Tables& tables,
                               const RowGradient& rows, const Memory& memory) {
  const std::int64_t padded = round_up(block.dim, kStep);
  const std::int64_t value_padded = round_up(block.value_dim, kStep);
  const std::int64_t place = place_of(tile.begin);
  std::int64_t first_strip = queries.num_strips;
  std::int64_t last_strip = 0;
  std::int64_t key_from = kKeyTile;
  std::int64_t key_to = 0;
  for (std::int64_t s = 0; s < queries.num_strips; ++s) {
    const Columns columns = columns_of(queries.strips[s], tile);
    if (columns.from >= columns.to) continue;
    if (s < first_strip) first_strip = s;
    last_strip = s + 1;
    if (columns.step_from < key_from) key_from = columns.step_from;
    if (columns.step_to > key_to) key_to = columns.step_to;
  }
  for (std::int64_t s = first_strip; s < last_strip; ++s) {
    const Strip& strip = queries.strips[s];
    const Columns columns = columns_of(strip, tile);
    Half* p_transposed = memory.p_transposed + strip.begin;
    Half* ds_transposed = memory.ds_transposed + strip.begin;
    for (std::int64_t j = key_from; j < key_to; ++j) {
      if (j >= columns.step_from && j < columns.step_to) continue;
      clear_halves(p_transposed + j * kQueries, kStep);
      clear_halves(ds_transposed + j * kQueries, kStep);
    }
    if (columns.from >= columns.to) continue;
    score_strip(block, strip, tile, columns, memory);
    multiply<false>({.c = memory.dp + columns.from,
                     .c_stride = kKeyTile,
                     .a = memory.d_rows + strip.begin * value_padded,
                     .a_stride = value_padded,
                     .b = memory.v_columns + place * kKeyTile * value_padded / 2 + columns.from,
                     .b_stride = kKeyTile,
                     .rows = strip.rows,
                     .columns = columns.to - columns.from,
                     .depth = summed(block.value_dim)});
    with_kind(block, tables, [&](auto kind) {
      differentiate_strip<decltype(kind)>(block, queries, strip, tile, columns, tables, rows, memory);
    });
    const std::int64_t width = columns.step_to - columns.step_from;
    multiply<true>({.c = memory.dq + strip.begin * padded,
                    .c_stride = padded,
                    .a = memory.ds + columns.step_from,
                    .a_stride = kKeyTile,
                    .b = memory.k_pairs + place * kKeyTile / 2 * padded + columns.step_from / 2 * padded,
                    .b_stride = padded,
                    .rows = strip.rows,
                    .columns = computed(block.dim),
                    .depth = width});
    transpose_halves(memory.p + columns.step_from, kKeyTile, width, p_transposed + columns.step_from * kQueries,
                     kQueries);
    transpose_halves(memory.ds + columns.step_from, kKeyTile, width, ds_transposed + columns.step_from * kQueries,
                     kQueries);
  }
  if (first_strip >= last_strip) return;
  const std::int64_t first_query = first_strip * kStep;
  const std::int64_t depth = (last_strip - first_strip) * kStep;
  const auto sum_over_queries = [&](const Half* transposed, const Pair* pairs, std::int64_t dim, float* sums) {
    const std::int64_t stride = round_up(dim, kStep);
    multiply<true>({.c = sums + (place * kKeyTile + key_from) * stride,
                    .c_stride = stride,
                    .a = transposed + key_from * kQueries + first_query,
                    .a_stride = kQueries,
                    .b = pairs + first_query / 2 * stride,
                    .b_stride = stride,
                    .rows = key_to - key_from,
                    .columns = computed(dim),
                    .depth = depth});
  };
  sum_over_queries(memory.p_transposed, memory.d_pairs, block.value_dim, memory.dv);
  sum_over_queries(memory.ds_transposed, memory.q_pairs, block.dim, memory.dk);
}

// Hands the gradients of the tile at a place of the ring to its keys and values.
inline void empty_place(const Block& block, const BlockGradient& gradient, std::int64_t place, const Memory& memory) {
  std::int64_t& begin = memory.ring->begin[place];
  if (begin < 0) return;
  const std::int32_t* numbers = block.key_rows + begin;
  const std::int64_t count = block.num_keys - begin < kKeyTile ? block.num_keys - begin : kKeyTile;
  add_to_rows(gradient.dv, numbers, count, memory.dv + place * kKeyTile * round_up(block.value_dim, kStep),
              block.value_dim, 1.0F);
  add_to_rows(gradient.dk, numbers, count, memory.dk + place * kKeyTile * round_up(block.dim, kStep), block.dim,
              block.scale);
  begin = -1;
}

inline void pack_place(const Block& block, const Tile& tile, const Memory& memory) {
  const std::int64_t padded = round_up(block.dim, kStep);
  const std::int64_t value_padded = round_up(block.value_dim, kStep);
  const std::int64_t place = place_of(tile.begin);
  const std::int64_t count = round_up(tile.count, kStep);
  const std::int32_t* numbers = block.key_rows + tile.begin;
  memory.ring->begin[place] = tile.begin;
  pack_rows(block.k, block.k_halves, block.k_stride, numbers, tile.count, block.dim, memory.k_rows);
  pack_rows(block.v, block.v_halves, block.v_stride, numbers, tile.count, block.value_dim, memory.v_rows);
  pack_columns(memory.k_rows, count, padded, memory.k_columns + place * kKeyTile * padded / 2, kKeyTile);
  pack_pairs(memory.k_rows, count, padded, memory.k_pairs + place * kKeyTile / 2 * padded);
  pack_columns(memory.v_rows, count, value_padded, memory.v_columns + place * kKeyTile * value_padded / 2, kKeyTile);
  clear_floats(memory.dk + place * kKeyTile * padded, count * padded);
  clear_floats(memory.dv + place * kKeyTile * value_padded, count * value_padded);
}

inline void backward(const Block& block, const BlockGradient& gradient, float* scratch) {
  [[maybe_unused]] const Session session;
  Memory memory;
  carve(block.dim, block.value_dim, table_limit(block), scratch, memory);
  Queries queries;
  read_queries(block, /*one_row=*/false, queries);
  const Tables tables = tables_of(block);
  const std::int64_t padded = round_up(block.dim, kStep);
  const std::int64_t value_padded = round_up(block.value_dim, kStep);
  const std::int64_t num_rows = queries.num_strips * kStep;
  pack_rows(block.q, block.q_halves, block.q_stride, block.query_positions, block.num_queries, block.dim, memory.q_rows);
  pack_pairs(memory.q_rows, num_rows, padded, memory.q_pairs);
  pack_rows(gradient.d_output, gradient.d_output_stride, block.query_positions, block.num_queries, block.value_dim,
            memory.d_rows);
  pack_pairs(memory.d_rows, num_rows, value_padded, memory.d_pairs);
  if (gradient.own_softmax) {
    // The forward pass keeps other things of a tile.
    for (std::int64_t place = 0; place < kPlaces && !block.first_of_run; ++place) {
      empty_place(block, gradient, place, memory);
    }
    memory.ring->clear();
    attend_block(block, queries, tables, memory);
    memory.ring->clear();
  } else if (block.first_of_run) {
    memory.ring->clear();
  }
  RowGradient rows;
  read_row_gradients(block, gradient, memory, rows);
  clear_floats(memory.dq, num_rows * padded);
  if (tables.key.rows > 0) {
    score_table(queries, memory.q_rows, block.dim, tables.key, memory.key_scores);
    clear_sums(queries, tables.key.rows, memory.ds_sums);
  }
  if (tables.value.rows > 0) {
    score_table(queries, memory.d_rows, block.value_dim, tables.value, memory.value_scores);
    clear_sums(queries, tables.value.rows, memory.weight_sums);
  }
  for (std::int64_t begin = queries.first_key / kKeyTile * kKeyTile; begin < queries.last_key; begin += kKeyTile) {
    Tile tile;
    read_tile(block, begin, tile);
    if (memory.ring->begin[place_of(begin)] != begin) {
      empty_place(block, gradient, place_of(begin), memory);
      pack_place(block, tile, memory);
    }
    differentiate_tile(block, queries, tile, tables, rows, memory);
  }
  for (std::int64_t place = 0; place < kPlaces && block.last_of_run; ++place) {
    empty_place(block, gradient, place, memory);
  }
  if (tables.key.rows > 0) {
    for (std::int64_t s = 0; s < queries.num_strips; ++s) {
      round_sums(queries, queries.strips[s], memory.ds_sums, tables.key.rows, memory.sums_rounded);
      add_table_product(queries, queries.strips[s], tables.key, memory.sums_rounded, block.dim, memory.dq);
    }
    if (gradient.d_key_table != nullptr) {
      add_to_table(block, queries, memory.ds_sums, tables.key.rows, memory.q_pairs, block.dim, block.scale, memory,
                   gradient.d_key_table);
    }
  }
  if (tables.value.rows > 0 && gradient.d_value_table != nullptr) {
    add_to_table(block, queries, memory.weight_sums, tables.value.rows, memory.d_pairs, block.value_dim, 1.0F, memory,
                 gradient.d_value_table);
  }
  add_to_rows(gradient.dq, block.query_positions, block.num_queries, memory.dq, block.dim, block.scale);
}
