// What dense_rows.inl wants to know of float32. The including file says what a Vector is.

using WeightVector = Vector;
constexpr std::int64_t kStep = 1;

struct Left {
  const float* first;
  std::int64_t depth;

  Left(const RowProduct& product, std::int64_t row)
      : first(static_cast<const float*>(product.rows) + row * product.depth), depth(product.depth) {}
  Vector at(int row, std::int64_t k) const { return everywhere(first[row * depth + k]); }
  Vector half_at(int row, std::int64_t k) const { return at(row, k); }
};

struct Floats {
  template <int kVectors, bool kSome>
  struct Right {
    const float* first;
    std::int64_t stride;
    Mask masks[kVectors];

    Right(const RowProduct& product, std::int64_t column, std::int64_t columns)
        : first(static_cast<const float*>(product.weights.values) +
                column / product.weights.strip_columns * product.weights.strip_stride +
                column % product.weights.strip_columns),
          stride(product.weights.depth_stride) {
      for (int v = 0; v < kVectors; ++v) masks[v] = mask_of(columns - v * kLanes);
    }
    [[gnu::always_inline]] void read(std::int64_t k, Vector (&weights)[kVectors]) const {
      const float* row = first + k * stride;
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        weights[v] = kSome ? load_some(row + v * kLanes, masks[v]) : load(row + v * kLanes);
      }
    }
    void read_half(std::int64_t k, Vector (&weights)[kVectors]) const { read(k, weights); }
    static void in_order(Vector (&)[kVectors]) {}
  };
};
