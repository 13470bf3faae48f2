#include "routing/kernels/optim/adafactor_step.h"

#include "routing/core/parallel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace routing::kernels {
namespace {

// The column sums of a tile stay in the first cache; those of all tiles of a tall matrix take 1/64 of its memory.
constexpr std::int64_t kTileRows = 128;
constexpr std::int64_t kTileColumns = 512;
// Numbers a thread gets at once.
constexpr std::int64_t kChunk = kTileRows * kTileColumns;
// Sums side by side, one for each place modulo 8: a single sum in order could not be vectorised.
constexpr std::int64_t kSums = 8;

// What the loops read of a step.
struct Factors {
  explicit Factors(const AdafactorStep& step)
      : gradient_scale(static_cast<float>(step.gradient_scale)), l2(static_cast<float>(step.l2)) {}

  float gradient_scale, l2;
};

template <bool kDecays>
[[gnu::always_inline]] inline float gradient_at(const float* g, const float* p, std::int64_t i, Factors f) {
  if constexpr (kDecays) return f.gradient_scale * g[i] + f.l2 * p[i];
  return f.gradient_scale * g[i];
}

// Sums side by side of every eighth number.
class Sums {
 public:
  [[gnu::always_inline]] void add(std::int64_t place, float number) {
    sums_[static_cast<std::size_t>(place)] += static_cast<double>(number);
  }
  double total() const { return std::accumulate(sums_.begin(), sums_.end(), 0.0); }

 private:
  std::array<double, kSums> sums_{};
};

// body(i, place) for 0 … count-1, in groups of eight that the compiler can turn into vectors.
template <class Body>
[[gnu::always_inline]] inline void for_each_place(std::int64_t count, const Body& body) {
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t place = 0; place < kSums; ++place) body(i + place, place);
  }
  for (std::int64_t place = 0; i < count; ++i, ++place) body(i, place);
}

double sum_of(const float* numbers, std::int64_t count) {
  Sums sums;
  for_each_place(count, [&](std::int64_t i, std::int64_t place) { sums.add(place, numbers[i]); });
  return sums.total();
}

std::int64_t blocks_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

using ColumnSums = std::array<double, kTileColumns>;

// A part of one matrix.
struct Tile {
  std::int64_t matrix = 0;
  std::int64_t row_block = 0, first_row = 0, last_row = 0;
  std::int64_t column_block = 0, first_column = 0, columns = 0;
};

// The tiles of all matrices, in order, a few small ones to a thread at once.
class Tiling {
 public:
  explicit Tiling(const AdafactorMatrices& arrays)
      : matrices_(arrays.matrices),
        rows_(arrays.rows),
        columns_(arrays.columns),
        row_blocks_(blocks_of(rows_, kTileRows)),
        column_blocks_(blocks_of(columns_, kTileColumns)) {}

  std::int64_t row_blocks() const { return row_blocks_; }
  std::int64_t column_blocks() const { return column_blocks_; }
  std::int64_t count() const { return matrices_ * row_blocks_ * column_blocks_; }

  // body(tile, its number).
  template <class Body>
  void for_each(const Body& body) const {
    const std::int64_t numbers = std::min(rows_, kTileRows) * std::min(columns_, kTileColumns);
    parallel_for(0, count(), std::max<std::int64_t>(1, kChunk / numbers), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t number = first; number < last; ++number) body(tile(number), number);
    });
  }

 private:
  Tile tile(std::int64_t number) const {
    Tile result;
    result.column_block = number % column_blocks_;
    result.row_block = number / column_blocks_ % row_blocks_;
    result.matrix = number / column_blocks_ / row_blocks_;
    result.first_row = result.row_block * kTileRows;
    result.last_row = std::min(rows_, result.first_row + kTileRows);
    result.first_column = result.column_block * kTileColumns;
    result.columns = std::min(columns_ - result.first_column, kTileColumns);
    return result;
  }

  std::int64_t matrices_, rows_, columns_, row_blocks_, column_blocks_;
};

double sum_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

std::vector<double> doubles(std::int64_t count) {
  return std::vector<double>(static_cast<std::size_t>(count));
}

// The three passes over a parameter, and what one leaves for the next.
template <bool kDecays>
class MatrixStep {
 public:
  MatrixStep(const AdafactorMatrices& arrays, const AdafactorStep& step)
      : a_(arrays),
        step_(step),
        f_(step),
        tiling_(arrays),
        row_factors_(static_cast<std::size_t>(a_.matrices * a_.rows)),
        column_factors_(static_cast<std::size_t>(a_.matrices * a_.columns)) {}

  void run() {
    const auto numbers = static_cast<double>(a_.matrices * a_.rows * a_.columns);
    const double mean_square_value = sum_squares() / numbers;
    make_factors();
    const double mean_square_update = step_.update_clip > 0.0 ? sum_update() / numbers : 0.0;
    apply(adafactor_step_size(step_, mean_square_value, mean_square_update));
  }

 private:
  std::int64_t offset(const Tile& tile, std::int64_t row) const {
    return (tile.matrix * a_.rows + row) * a_.columns + tile.first_column;
  }

  // The moments, from sums of squares of the gradient; returns the sum of squares of the value.
  double sum_squares() {
    std::vector<double> row_sums = doubles(tiling_.column_blocks() * a_.matrices * a_.rows);
    std::vector<double> column_sums = doubles(tiling_.row_blocks() * a_.matrices * a_.columns);
    std::vector<double> value_sums = doubles(tiling_.count());
    tiling_.for_each([&](const Tile& tile, std::int64_t number) {
      double* const columns =
          column_sums.data() + (tile.row_block * a_.matrices + tile.matrix) * a_.columns + tile.first_column;
      double* const rows = row_sums.data() + (tile.column_block * a_.matrices + tile.matrix) * a_.rows;
      ValueSums values;
      for (std::int64_t row = tile.first_row; row < tile.last_row; ++row) {
        rows[row] = sum_row(tile, row, columns, values);
      }
      value_sums[static_cast<std::size_t>(number)] = std::accumulate(values.sums.begin(), values.sums.end(), 0.0);
    });
    mix_in(row_sums, tiling_.column_blocks(), a_.columns, {a_.row_moment, a_.matrices * a_.rows});
    mix_in(column_sums, tiling_.row_blocks(), a_.rows, {a_.column_moment, a_.matrices * a_.columns});
    return sum_of(value_sums);
  }

  struct ValueSums {
    ColumnSums sums{};
    std::array<float, kTileColumns> squares{};  // of the gradient, in the row at hand
  };

  // Adds the squares of a row of the tile to the sums of its columns; returns their sum over the row.
  double sum_row(const Tile& tile, std::int64_t row, double* __restrict columns, ValueSums& values) const {
    const float* const g = a_.gradient + offset(tile, row);
    const float* const p = a_.value + offset(tile, row);
    double* __restrict const value_sums = values.sums.data();
    float* __restrict const squares = values.squares.data();
    for (std::int64_t i = 0; i < tile.columns; ++i) {
      const float gradient = gradient_at<kDecays>(g, p, i, f_);
      squares[i] = gradient * gradient;
      columns[i] += static_cast<double>(squares[i]);
      value_sums[i] += static_cast<double>(p[i] * p[i]);
    }
    return sum_of(squares, tile.columns);
  }

  struct Moments {
    float* numbers = nullptr;
    std::int64_t count = 0;
  };

  // moments <- k moments + (1 - k) (sum of the blocks' sums / terms + floor), one after the other.
  void mix_in(const std::vector<double>& sums, std::int64_t blocks, std::int64_t terms, Moments moments) const {
    const double keep = adafactor_keep(step_);
    parallel_for(0, moments.count, kChunk / kTileRows, [&](std::int64_t first, std::int64_t last) {
      std::array<double, kChunk / kTileRows> totals{};
      for (std::int64_t block = 0; block < blocks; ++block) {
        const double* const of_block = sums.data() + block * moments.count + first;
        for (std::int64_t i = 0; i < last - first; ++i) totals[static_cast<std::size_t>(i)] += of_block[i];
      }
      for (std::int64_t i = first; i < last; ++i) {
        const double mean = totals[static_cast<std::size_t>(i - first)] / static_cast<double>(terms);
        const double mixed =
            keep * static_cast<double>(moments.numbers[i]) + (1.0 - keep) * (mean + kAdafactorSquareFloor);
        moments.numbers[i] = static_cast<float>(mixed);
      }
    });
  }

  // Apart, their product would leave the range of float32: both moments may be 1e-30.
  void make_factors() {
    for (std::int64_t matrix = 0; matrix < a_.matrices; ++matrix) {
      const float* const moments = a_.row_moment + matrix * a_.rows;
      const double mean = std::accumulate(moments, moments + a_.rows, 0.0) / static_cast<double>(a_.rows);
      float* const factors = row_factors_.data() + matrix * a_.rows;
      for (std::int64_t i = 0; i < a_.rows; ++i) {
        factors[i] = static_cast<float>(std::sqrt(mean / static_cast<double>(moments[i])));
      }
    }
    for (std::size_t i = 0; i < column_factors_.size(); ++i) {
      column_factors_[i] = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a_.column_moment[i])));
    }
  }

  const float* column_factors(const Tile& tile) const {
    return column_factors_.data() + tile.matrix * a_.columns + tile.first_column;
  }
  float row_factor(const Tile& tile, std::int64_t row) const {
    return row_factors_[static_cast<std::size_t>(tile.matrix * a_.rows + row)];
  }

  // The sum of squares of u before clipping.
  double sum_update() const {
    std::vector<double> sums = doubles(tiling_.count());
    tiling_.for_each([&](const Tile& tile, std::int64_t number) {
      ColumnSums updates{};
      for (std::int64_t row = tile.first_row; row < tile.last_row; ++row) sum_update_of_row(tile, row, updates);
      sums[static_cast<std::size_t>(number)] = std::accumulate(updates.begin(), updates.end(), 0.0);
    });
    return sum_of(sums);
  }

  void sum_update_of_row(const Tile& tile, std::int64_t row, ColumnSums& sums) const {
    const float* const g = a_.gradient + offset(tile, row);
    const float* const p = a_.value + offset(tile, row);
    const float* const columns = column_factors(tile);
    const float row_part = row_factor(tile, row);
    double* __restrict const updates = sums.data();
    for (std::int64_t i = 0; i < tile.columns; ++i) {
      const float update = gradient_at<kDecays>(g, p, i, f_) * row_part * columns[i];
      updates[i] += static_cast<double>(update * update);
    }
  }

  void apply(double step_size) const {
    const auto keep = static_cast<float>(1.0 - step_.learning_rate * step_.decoupled_decay);
    const auto size = static_cast<float>(step_size);
    tiling_.for_each([&](const Tile& tile, std::int64_t) {
      const float* __restrict const columns = column_factors(tile);
      for (std::int64_t row = tile.first_row; row < tile.last_row; ++row) {
        const float* __restrict const g = a_.gradient + offset(tile, row);
        float* __restrict const p = a_.value + offset(tile, row);
        const float row_part = row_factor(tile, row);
        for (std::int64_t i = 0; i < tile.columns; ++i) {
          p[i] = keep * p[i] - size * (gradient_at<kDecays>(g, p, i, f_) * row_part * columns[i]);
        }
      }
    });
  }

  AdafactorMatrices a_;
  const AdafactorStep& step_;
  Factors f_;
  Tiling tiling_;
  std::vector<float> row_factors_;     // sqrt(mean(R) / R_i)
  std::vector<float> column_factors_;  // 1 / sqrt(C_j)
};

template <bool kDecays>
void step_of_vector(const AdafactorVector& a, const AdafactorStep& step) {
  const Factors f(step);
  const auto kept = static_cast<float>(adafactor_keep(step));
  const auto mixed_in = static_cast<float>(1.0 - adafactor_keep(step));
  constexpr auto kFloor = static_cast<float>(kAdafactorSquareFloor);
  std::vector<double> value_sums = doubles(blocks_of(a.count, kChunk));
  std::vector<double> update_sums = value_sums;
  parallel_for(0, a.count, kChunk, [&](std::int64_t first, std::int64_t last) {
    const float* const g = a.gradient + first;
    const float* const p = a.value + first;
    float* __restrict const v = a.second_moment + first;
    Sums value_sum;
    Sums update_sum;
    for_each_place(last - first, [&](std::int64_t i, std::int64_t place) {
      const float gradient = gradient_at<kDecays>(g, p, i, f);
      v[i] = kept * v[i] + mixed_in * (gradient * gradient + kFloor);
      const float update = gradient / std::sqrt(v[i]);
      value_sum.add(place, p[i] * p[i]);
      update_sum.add(place, update * update);
    });
    value_sums[static_cast<std::size_t>(first / kChunk)] = value_sum.total();
    update_sums[static_cast<std::size_t>(first / kChunk)] = update_sum.total();
  });
  const auto numbers = static_cast<double>(a.count);
  const auto size =
      static_cast<float>(adafactor_step_size(step, sum_of(value_sums) / numbers, sum_of(update_sums) / numbers));
  const auto keep = static_cast<float>(1.0 - step.learning_rate * step.decoupled_decay);
  parallel_for(0, a.count, kChunk, [&](std::int64_t first, std::int64_t last) {
    const float* __restrict const g = a.gradient;
    const float* __restrict const v = a.second_moment;
    float* __restrict const p = a.value;
    for (std::int64_t i = first; i < last; ++i) {
      p[i] = keep * p[i] - size * (gradient_at<kDecays>(g, p, i, f) / std::sqrt(v[i]));
    }
  });
}

}  // namespace

double adafactor_keep(const AdafactorStep& step) {
  return 1.0 - std::pow(static_cast<double>(step.step), -step.decay_exponent);
}

double adafactor_step_size(const AdafactorStep& step, double mean_square_value, double mean_square_update) {
  double size = step.learning_rate;
  if (step.relative_step) size *= std::max(std::sqrt(mean_square_value), kAdafactorScaleFloor);
  if (step.update_clip > 0.0) size /= std::max(1.0, std::sqrt(mean_square_update) / step.update_clip);
  return size;
}

void adafactor_step(const AdafactorMatrices& arrays, const AdafactorStep& step) {
  if (arrays.matrices == 0 || arrays.rows == 0 || arrays.columns == 0) return;
  if (step.l2 == 0.0) {
    MatrixStep<false>(arrays, step).run();
  } else {
    MatrixStep<true>(arrays, step).run();
  }
}

void adafactor_step(const AdafactorVector& arrays, const AdafactorStep& step) {
  if (arrays.count == 0) return;
  if (step.l2 == 0.0) {
    step_of_vector<false>(arrays, step);
  } else {
    step_of_vector<true>(arrays, step);
  }
}

}  // namespace routing::kernels
