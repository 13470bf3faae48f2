// The loops of gradient_tiles.h. Included once per instruction set, inside an unnamed namespace; the includer defines
// - Vector, kWidth: a register and its numbers
// - kLeft, kVectors: columns of dY and registers of X in a tile; kLeft * kVectors sums stay in registers
// - kRowsPerStep: 2 for pairs of bfloat16, 1 for float32
// - pack_columns: one step of some columns of a block, float32 or bfloat16, into units that follow each other
// - load, store: of float32
// - Factor, load_factor, splat: kWidth units, and one unit in all lanes
// - multiply_add(sum, left, right)

constexpr std::int64_t kRight = kVectors * kWidth;

template <std::int64_t kPanel, bool kRound, class Number>
void pack_panels_of(const PackBlock& block, const Number* numbers) {
  if (block.column_sums != nullptr) std::fill_n(block.column_sums, block.num_columns, 0.0F);
  const std::int64_t full = block.num_columns / kPanel;
  const std::int64_t rest = block.num_columns % kPanel;
  for (std::int64_t row = 0, step = 0; row < block.num_rows; row += kRowsPerStep, ++step) {
    GradientUnit* units = block.panels + step * kPanel;
    for (std::int64_t panel = 0; panel < full; ++panel, units += block.panel_stride) {
      pack_columns<kRound>(block, numbers, row, panel * kPanel, kPanel, units);
    }
    if (rest == 0) continue;
    pack_columns<kRound>(block, numbers, row, full * kPanel, rest, units);
    std::fill(units + rest, units + kPanel, GradientUnit{0});
  }
}

template <std::int64_t kPanel>
void pack_panels(const PackBlock& block) {
  if (block.halves != nullptr) return pack_panels_of<kPanel, false>(block, block.halves);
  return block.round_to_bfloat16 ? pack_panels_of<kPanel, true>(block, block.floats)
                                 : pack_panels_of<kPanel, false>(block, block.floats);
}

void pack(const PackBlock& block) {
  return block.width == kLeft ? pack_panels<kLeft>(block) : pack_panels<kRight>(block);
}

void multiply(const GradientTile& tile) {
  Vector sums[kLeft][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kLeft; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[i][v] = Vector{};
  }
  const GradientUnit* left = tile.left;
  const GradientUnit* right = tile.right;
  for (std::int64_t step = 0; step < tile.num_steps; ++step, left += kLeft, right += kRight) {
    Factor factors[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) factors[v] = load_factor(right + v * kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < kLeft; ++i) {
      const Factor one = splat(left[i]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = multiply_add(sums[i][v], one, factors[v]);
    }
  }
  if (tile.num_rows == kLeft && tile.num_columns == kRight) {
#pragma GCC unroll 16
    for (int i = 0; i < kLeft; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        float* to = tile.gradient + i * tile.stride + v * kWidth;
        store(to, tile.accumulate ? load(to) + sums[i][v] : sums[i][v]);
      }
    }
    return;
  }
  float all[kLeft * kRight];
#pragma GCC unroll 16
  for (int i = 0; i < kLeft; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(all + i * kRight + v * kWidth, sums[i][v]);
  }
  for (std::int64_t i = 0; i < tile.num_rows; ++i) {
    float* to = tile.gradient + i * tile.stride;
    for (std::int64_t c = 0; c < tile.num_columns; ++c) {
      to[c] = tile.accumulate ? to[c] + all[i * kRight + c] : all[i * kRight + c];
    }
  }
}

GradientLoops loops() {
  return {
      .rows_per_step = kRowsPerStep, .left_width = kLeft, .right_width = kRight, .pack = pack, .multiply = multiply};
}
