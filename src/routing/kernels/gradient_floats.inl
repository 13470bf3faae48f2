// How gradient_tiles.inl packs units of float32. The compiler makes vectors of the loops: panels are of constant width.

// To nearest, ties to even; the lower half is 0. Not a number stays so.
inline std::uint32_t rounded_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t up = bits + 0x7fffU + (bits >> 16U & 1U);
  return (value != value ? bits | 0x400000U : up) & 0xffff0000U;
}

template <bool kRelu, bool kRound>
[[gnu::always_inline]] inline void pack_columns(const PackBlock& block, std::int64_t row, std::int64_t first,
                                                std::int64_t columns, GradientUnit* units) {
  const float* numbers = block.numbers + row * block.stride + first;
  const float* outputs = kRelu ? block.relu_outputs + row * block.stride + first : nullptr;
  const auto number = [&](std::int64_t c) { return !kRelu || outputs[c] > 0.0F ? numbers[c] : 0.0F; };
  for (std::int64_t c = 0; c < columns; ++c) {
    units[c] = kRound ? rounded_bits(number(c)) : std::bit_cast<std::uint32_t>(number(c));
  }
  if (block.column_sums == nullptr) return;
  float* sums = block.column_sums + first;
  for (std::int64_t c = 0; c < columns; ++c) sums[c] += number(c);
}
