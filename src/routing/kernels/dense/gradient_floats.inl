// What gradient_tiles.inl wants to know of units of float32. The compiler makes vectors of the packing: panels are of
// constant width.

using Factor = Vector;
constexpr std::int64_t kRowsPerStep = 1;

inline Factor load_factor(const GradientUnit* from) {
  return load(reinterpret_cast<const float*>(from));
}
inline Factor splat(GradientUnit unit) {
  return std::bit_cast<float>(unit) - Vector{};
}
inline Vector multiply_add(Vector sum, Factor a, Factor b) {
  return sum + a * b;
}

template <bool kRound, class Number>
[[gnu::always_inline]] inline void pack_columns(const PackBlock& block, const Number* all, std::int64_t row,
                                                std::int64_t first, std::int64_t columns, GradientUnit* units) {
  const Number* numbers = all + row * block.stride + first;
  for (std::int64_t c = 0; c < columns; ++c) {
    const float number = widened(numbers[c]);
    units[c] = kRound ? rounded_bits(number) : std::bit_cast<std::uint32_t>(number);
  }
  if (block.column_sums == nullptr) return;
  float* sums = block.column_sums + first;
  for (std::int64_t c = 0; c < columns; ++c) sums[c] += widened(numbers[c]);
}
