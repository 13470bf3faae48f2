// The backward pass of one block of fused attention. Included after attend_loops.inl.
//
// With P the probabilities, recomputed as e^(s - shift), f the factors of dropout and dO the weighted gradient:
//   dP_ij = f_ij dO_i . (v_j + b_ij)       dS_ij = P_ij (dP_ij - correction_i)
// One softmax over all groups: shift is the row's lse, correction = dO . O - dL. A softmax per group: shift is the lse
// of the group, correction = sum_j P_ij dP_ij - dL e^(shift - lse). Both come out as dO . (output of that softmax).

struct LaneGradient {
  float shift[kLanes];
  float correction[kLanes];
};

inline float dot(const float* a, std::int64_t a_step, const float* b, std::int64_t b_step, std::int64_t count) {
  float sum = 0.0F;
  for (std::int64_t e = 0; e < count; ++e) sum += a[e * a_step] * b[e * b_step];
  return sum;
}

// to[lane][d] = from[d][lane], rows rounded up with zeros.
inline void transpose_lanes(const float* from, std::int64_t dim, float* to) {
  const std::int64_t stride = round_up(dim);
  for (std::int64_t i = 0; i < kLanes; ++i) {
    for (std::int64_t d = 0; d < dim; ++d) to[i * stride + d] = from[d * kLanes + i];
    for (std::int64_t d = dim; d < stride; ++d) to[i * stride + d] = 0.0F;
  }
}

inline void weigh_d_output(const Block& block, const BlockGradient& gradient, float* d_output) {
  if (gradient.output_weight == nullptr) return;
  for (std::int64_t i = 0; i < block.num_queries; ++i) {
    const float weight = gradient.output_weight[block.query_positions[i]];
    for (std::int64_t e = 0; e < block.value_dim; ++e) d_output[e * kLanes + i] *= weight;
  }
}

inline void read_lane_gradients(const Block& block, const BlockGradient& gradient, const Lanes& lanes,
                                const Memory& memory, LaneGradient& lane) {
  for (std::int64_t i = 0; i < block.num_queries; ++i) {
    prefetch_row(gradient.output + block.query_positions[i] * gradient.output_stride, block.value_dim);
  }
  Softmax softmax;
  if (gradient.own_softmax) attend_block(block, lanes, memory, softmax);
  for (std::int64_t i = 0; i < kLanes; ++i) {
    lane.shift[i] = lane.correction[i] = 0.0F;
    if (i >= block.num_queries) continue;
    const std::int64_t row = block.query_positions[i];
    const float lse = gradient.lse[row];
    if (lse == -__builtin_inff()) continue;
    const float d_lse = gradient.d_lse[row];
    if (!gradient.own_softmax) {
      lane.shift[i] = lse;
      lane.correction[i] = dot(gradient.d_output + row * gradient.d_output_stride, 1,
                               gradient.output + row * gradient.output_stride, 1, block.value_dim) -
                           d_lse;
    } else if (softmax.total[i] != 0.0F) {
      lane.shift[i] = lse_of(softmax, i);
      lane.correction[i] = dot(memory.d_output + i, kLanes, memory.o + i, kLanes, block.value_dim) / softmax.total[i] -
                           d_lse * __builtin_expf(lane.shift[i] - lse);
    }
  }
}

inline void add_to_row(const GradientRows& to, std::int64_t number, const float* sums, std::int64_t dim) {
  float* row = to.base + number * to.stride;
  std::uint8_t& written = to.written[number];
  if (written != 0) {
    for (std::int64_t d = 0; d < dim; ++d) row[d] += sums[d];
  } else {
    for (std::int64_t d = 0; d < dim; ++d) row[d] = sums[d];
  }
  written = 1;
}

// to[row of key j][d] += sum over i of weights[j][i] * rows[i][d]
inline void add_to_keys(const Tile& tile, const float* weights, const float* rows, std::int64_t dim, float* sums,
                        const GradientRows& to) {
  const std::int64_t stride = round_up(dim);
  const float* weight_rows[kKeyTile];
  for (std::int64_t j = 0; j < tile.count; ++j) weight_rows[j] = weights + j * kLanes;
  for (std::int64_t d = 0; d < stride; d += kLanes) {
    dots(weight_rows, tile.count, 1, kLanes, rows + d, stride, sums + d, stride);
  }
  for (std::int64_t j = 0; j < tile.count; ++j) {
    add_to_row(to, tile.row[j], sums + j * stride, dim);
  }
}

// d_table[row of (i, j)] += weights[j][i] * rows[i]. Where lanes and keys are both consecutive, all pairs of one
// diagonal share a table row: a diagonal of the tile, read with a step of kLanes + 1, is a row of a matrix product.
inline void add_to_table(const Block& block, const Lanes& lanes, const Tile& tile, const float* weights,
                         const float* rows, std::int64_t dim, float* sums, float* d_table) {
  const std::int64_t stride = round_up(dim);
  const bool keys_consecutive = tile.offset_base[tile.count - 1] - tile.offset_base[0] == tile.count - 1;
  if (!lanes.consecutive || !keys_consecutive) {
    for (std::int64_t i = 0; i < block.num_queries; ++i) {
      const KeyRange range = keys_of_lane(lanes, tile, i);
      for (std::int64_t j = range.begin; j < range.end; ++j) {
        float* to = d_table + table_row(block, lanes, tile, i, j) * dim;
        const float weight = weights[j * kLanes + i];
        for (std::int64_t d = 0; d < dim; ++d) to[d] += weight * rows[i * stride + d];
      }
    }
    return;
  }
  // Diagonal x holds the pairs with j = x + i; x runs from 1 - kLanes to count - 1.
  const std::int64_t diagonals = tile.count + kLanes - 1;
  const float* diagonal[kKeyTile + kLanes];
  for (std::int64_t n = 0; n < diagonals; ++n) diagonal[n] = weights + (n + 1 - kLanes) * kLanes;
  for (std::int64_t d = 0; d < stride; d += kLanes) {
    dots(diagonal, diagonals, kLanes + 1, kLanes, rows + d, stride, sums + d, stride);
  }
  for (std::int64_t n = 0; n < diagonals; ++n) {
    std::int64_t offset = tile.offset_base[0] - lanes.center[0] + n + 1 - kLanes;
    offset = offset < -block.max_relative ? -block.max_relative : offset;
    offset = offset > block.max_relative ? block.max_relative : offset;
    float* to = d_table + (offset + block.max_relative) * dim;
    for (std::int64_t d = 0; d < dim; ++d) to[d] += sums[n * stride + d];
  }
}

// s becomes the probabilities after dropout, ds the gradient of the scores.
inline void probability_gradients(const Block& block, const Lanes& lanes, const Tile& tile, const LaneGradient& lane,
                                  const Memory& memory) {
  dots(tile.values, tile.count, 1, block.value_dim, memory.d_output, kLanes, memory.ds, kLanes);
  if (block.value_table.rows != nullptr) {
    add_table_dots(block, lanes, tile, block.value_table, block.value_dim, memory.d_output, memory.ds);
  }
  if (block.dropout) {
    dropout_tile(block, lanes, tile, memory.factors);
    multiply_tile(memory.ds, memory.factors, tile.count);
  }
  for (std::int64_t half = 0; half < kLanes; half += kWidth) {
    const Vec shift = load(lane.shift + half);
    const Vec correction = load(lane.correction + half);
    for (std::int64_t j = 0; j < tile.count; ++j) {
      const std::int64_t n = j * kLanes + half;
      const Vec probability = exp_of(load(memory.s + n) - shift);
      store(memory.s + n, probability);
      store(memory.ds + n, probability * (load(memory.ds + n) - correction));
    }
  }
  if (block.dropout) multiply_tile(memory.s, memory.factors, tile.count);
}

inline void clear_lanes(float* rows) {
  for (std::int64_t n = 0; n < kLanes * kLanes; n += kWidth) store(rows + n, Vec{});
}

inline void backward(const Block& block, const BlockGradient& gradient, float* scratch) {
  Memory memory;
  carve(block.dim, block.value_dim, scratch, &memory);
  Lanes lanes;
  read_lanes(block, lanes);
  pack_lanes(block, block.q, block.q_stride, block.dim, block.scale, memory.q);
  pack_lanes(block, gradient.d_output, gradient.d_output_stride, block.value_dim, 1.0F, memory.d_output);
  weigh_d_output(block, gradient, memory.d_output);
  transpose_lanes(memory.q, block.dim, memory.q_rows);
  transpose_lanes(memory.d_output, block.value_dim, memory.d_output_rows);
  LaneGradient lane;
  read_lane_gradients(block, gradient, lanes, memory, lane);
  for (std::int64_t n = 0; n < block.dim * kLanes; ++n) memory.dq[n] = 0.0F;
  for (std::int64_t i = 0; i < block.num_queries; ++i) {
    prefetch_row(gradient.dq.base + block.query_positions[i] * gradient.dq.stride, block.dim);
  }
  clear_lanes(memory.s - kLanes * kLanes);
  clear_lanes(memory.ds - kLanes * kLanes);

  for (std::int64_t begin = lanes.first_key / kKeyTile * kKeyTile; begin < lanes.last_key; begin += kKeyTile) {
    Tile tile;
    read_tile(block, lanes, begin, tile);
    for (std::int64_t j = 0; j < tile.count; ++j) {
      prefetch_row(gradient.dk.base + tile.row[j] * gradient.dk.stride, block.dim);
      prefetch_row(gradient.dv.base + tile.row[j] * gradient.dv.stride, block.value_dim);
    }
    score_tile(block, lanes, tile, memory.q, memory.s);
    probability_gradients(block, lanes, tile, lane, memory);
    add_to_keys(tile, memory.s, memory.d_output_rows, block.value_dim, memory.sums, gradient.dv);
    add_to_keys(tile, memory.ds, memory.q_rows, block.dim, memory.sums, gradient.dk);
    combine(tile.keys, block.dim, tile.count, memory.ds, memory.dq);
    if (block.key_table.rows != nullptr) {
      add_table_rows(block, lanes, tile, block.key_table, block.dim, memory.ds, memory.dq, memory.row_sum);
    }
    if (gradient.d_key_table != nullptr) {
      clear_lanes(memory.ds + tile.count * kLanes);
      add_to_table(block, lanes, tile, memory.ds, memory.q_rows, block.dim, memory.sums, gradient.d_key_table);
    }
    if (gradient.d_value_table != nullptr) {
      clear_lanes(memory.s + tile.count * kLanes);
      add_to_table(block, lanes, tile, memory.s, memory.d_output_rows, block.value_dim, memory.sums,
                   gradient.d_value_table);
    }
  }
  for (std::int64_t i = 0; i < block.num_queries; ++i) {
    for (std::int64_t d = 0; d < block.dim; ++d) memory.row_sum[d] = block.scale * memory.dq[d * kLanes + i];
    add_to_row(gradient.dq, block.query_positions[i], memory.row_sum, block.dim);
  }
}
