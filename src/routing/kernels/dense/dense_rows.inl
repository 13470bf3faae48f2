// The loops of dense_rows.h. The including file says what numbers it works on:
//
//   Vector, Mask, kLanes        sums, the columns of a vector that count, how many there are
//   kWide                       vectors of sums that a single row keeps in registers
//   kGroupRows, kGroupVectors   rows that share the weights in registers, and vectors of sums of each
//   WeightVector, kStep         weights, and how many terms of depth a lane of them holds
//   zero, add, multiply_add, at_least_zero, mask_of, load_some, store_some
//   Left                        rows: at(row, k), and half_at(row, k) where fewer than kStep terms are left
//   Source::Right               weights: read(k), read_half(k), and in_order(sums) if they come in another order

// Where the part of the sum that begins at `begin` ends.
inline std::int64_t part_end(const SumOrder& order, std::int64_t depth, std::int64_t begin) {
  const std::int64_t most = begin < order.last ? order.last : depth;
  return order.block < most - begin ? begin + order.block : most;
}

// One group of rows by one group of vectors. The sums of a part stay in registers.
// kSome: there are fewer columns than the vectors could hold.
template <class Source, int kRows, int kVectors, bool kSome>
inline void multiply_group(const RowProduct& product, std::int64_t row, std::int64_t column, std::int64_t columns) {
  const Left left(product, row);
  using Right = typename Source::template Right<kVectors, kSome>;
  const Right right(product, column, columns);
  Vector totals[kRows][kVectors] = {};
  for (std::int64_t begin = 0; begin < product.depth;) {
    const std::int64_t end = part_end(product.order, product.depth, begin);
    Vector sums[kRows][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[r][v] = zero();
    }
    std::int64_t k = begin;
    for (; k + kStep <= end; k += kStep) {
      WeightVector weights[kVectors];
      right.read(k, weights);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const WeightVector number = left.at(r, k);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add(sums[r][v], number, weights[v]);
      }
    }
    if (k < end) {
      WeightVector weights[kVectors];
      right.read_half(k, weights);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const WeightVector number = left.half_at(r, k);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add(sums[r][v], number, weights[v]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) totals[r][v] = begin == 0 ? sums[r][v] : add(totals[r][v], sums[r][v]);
    }
    begin = end;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    Right::in_order(totals[r]);
    float* outputs = product.outputs + (row + r) * product.output_stride + column;
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const Mask mask = mask_of(kSome ? columns - v * kLanes : kLanes);
      Vector result = totals[r][v];
      if (product.bias != nullptr) result = add(result, load_some(product.bias + column + v * kLanes, mask));
      if (product.relu) result = at_least_zero(result);
      store_some(outputs + v * kLanes, mask, result);
    }
  }
}

template <class Source, int kRows>
inline void multiply_strip(const RowProduct& product, std::int64_t row, std::int64_t column, std::int64_t columns) {
  if (columns == kGroupVectors * kLanes) {
    multiply_group<Source, kRows, kGroupVectors, false>(product, row, column, columns);
  } else {
    multiply_group<Source, kRows, kGroupVectors, true>(product, row, column, columns);
  }
}

template <class Source>
inline void multiply_rows(const RowProduct& product, std::int64_t first, std::int64_t end) {
  constexpr std::int64_t kWideColumns = kWide * kLanes;
  constexpr std::int64_t kGroupColumns = kGroupVectors * kLanes;
  static_assert(kRowStep % kGroupColumns == 0);
  std::int64_t column = first;
  if (product.num_rows == 1 && product.weights.strip_columns >= kWideColumns) {
    for (; column + kWideColumns <= end; column += kWideColumns) {
      multiply_group<Source, 1, kWide, false>(product, 0, column, kWideColumns);
    }
  }
  for (; column < end; column += kGroupColumns) {
    const std::int64_t columns = end - column < kGroupColumns ? end - column : kGroupColumns;
    std::int64_t row = 0;
    for (; row + kGroupRows <= product.num_rows; row += kGroupRows) {
      multiply_strip<Source, kGroupRows>(product, row, column, columns);
    }
    for (; row + 2 <= product.num_rows; row += 2) multiply_strip<Source, 2>(product, row, column, columns);
    if (row < product.num_rows) multiply_strip<Source, 1>(product, row, column, columns);
  }
}
