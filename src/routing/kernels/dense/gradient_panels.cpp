#include "routing/kernels/dense/gradient_panels.h"

#include "routing/core/parallel.h"
#include "routing/kernels/dense/dense_primitives.h"
#include "routing/kernels/dispatch/isa.h"

#include <algorithm>
#include <vector>

namespace routing::kernels {
namespace {

// Panels lie this many units farther apart than they are long: neighbours a power of two apart would share the sets of
// the first-level cache while they are written.
constexpr std::int64_t kPanelGap = 16;
// Bytes of panels that are made before they are multiplied. More would not stay in the last-level cache, fewer read and
// write the gradient more often.
constexpr std::int64_t kRoundBytes = std::int64_t{8} << 20;
// Columns of the gradient in a tile of work; its rows follow from how many tiles threads need.
constexpr std::int64_t kTileColumns = 256;
constexpr std::int64_t kMostPanels = 16;

std::int64_t parts_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

// One factor as panels: those of a chunk of rows follow each other, chunk after chunk.
struct Factor {
  DenseRows numbers;
  float* column_sums = nullptr;  // [chunks of a round, columns], or null
  std::int64_t columns = 0;
  std::int64_t width = 0;  // of a panel
  GradientUnit* units = nullptr;

  std::int64_t panels() const { return parts_of(columns, width); }
  std::int64_t panel_units() const { return kChunkSteps * width + kPanelGap; }
  std::int64_t chunk_units() const { return panels() * panel_units(); }
  GradientUnit* panel(std::int64_t chunk, std::int64_t index) const {
    return units + chunk * chunk_units() + index * panel_units();
  }
  // Blocks of columns that are packed by themselves.
  std::int64_t block_columns() const { return kPackColumns / width * width; }
  std::int64_t blocks() const { return parts_of(columns, block_columns()); }
};

// Chunks that are packed, then multiplied.
struct Round {
  std::int64_t first_chunk = 0;
  std::int64_t chunks = 0;
};

class PanelGradient {
 public:
  PanelGradient(const GradientInputs& inputs, WeightShape shape, const GradientOptions& options,
                const WeightGradients& gradients, const GradientLoops& loops)
      : options_(options), gradients_(gradients), loops_(loops), num_rows_(inputs.num_rows) {
    left_ = {.numbers = inputs.outputs_gradient, .columns = shape.out, .width = loops.left_width};
    right_ = {.numbers = inputs.inputs, .columns = shape.in, .width = loops.right_width};
    chunk_rows_ = kChunkSteps * loops.rows_per_step;
    const std::int64_t chunks = parts_of(num_rows_, chunk_rows_);
    const auto unit_bytes = static_cast<std::int64_t>(sizeof(GradientUnit));
    const std::int64_t chunk_bytes = (left_.chunk_units() + right_.chunk_units()) * unit_bytes;
    round_chunks_ = std::clamp<std::int64_t>(kRoundBytes / chunk_bytes, 1, std::max<std::int64_t>(1, chunks));
  }

  void run() {
    thread_local Scratch units;
    left_.units = units.get<GradientUnit>(round_chunks_ * (left_.chunk_units() + right_.chunk_units()));
    right_.units = left_.units + round_chunks_ * left_.chunk_units();
    if (gradients_.bias != nullptr) sums_.resize(static_cast<std::size_t>(round_chunks_ * left_.columns));
    left_.column_sums = gradients_.bias != nullptr ? sums_.data() : nullptr;
    clear();
    const std::int64_t chunks = parts_of(num_rows_, chunk_rows_);
    for (std::int64_t first = 0; first < chunks; first += round_chunks_) {
      const Round round{.first_chunk = first, .chunks = std::min(round_chunks_, chunks - first)};
      pack(round);
      if (gradients_.weight != nullptr) multiply(round);
      if (gradients_.bias != nullptr) add_bias(round);
    }
  }

 private:
  void clear() const {
    if (options_.accumulate) return;
    if (gradients_.weight != nullptr && num_rows_ == 0) {
      std::fill_n(gradients_.weight, left_.columns * right_.columns, 0.0F);
    }
    if (gradients_.bias != nullptr) std::fill_n(gradients_.bias, left_.columns, 0.0F);
  }

  std::int64_t rows_of(std::int64_t chunk) const { return std::min(chunk_rows_, num_rows_ - chunk * chunk_rows_); }

  void pack(const Round& round) const {
    // Without a weight only the sums of the left factor are wanted.
    const std::int64_t right_blocks = gradients_.weight != nullptr ? right_.blocks() : 0;
    const std::int64_t blocks = left_.blocks() + right_blocks;
    parallel_for(0, round.chunks * blocks, 1, [&](std::int64_t task, std::int64_t) {
      const std::int64_t chunk = task / blocks;
      const std::int64_t block = task % blocks;
      const bool is_left = block < left_.blocks();
      pack_block(is_left ? left_ : right_, round.first_chunk, chunk, is_left ? block : block - left_.blocks());
    });
  }

  void pack_block(const Factor& factor, std::int64_t first_chunk, std::int64_t chunk, std::int64_t block) const {
    const std::int64_t column = block * factor.block_columns();
    const std::int64_t offset = (first_chunk + chunk) * chunk_rows_ * factor.columns + column;
    float* sums = factor.column_sums == nullptr ? nullptr : factor.column_sums + chunk * factor.columns + column;
    const DenseRows numbers = factor.numbers.from(offset);
    loops_.pack({.floats = numbers.floats,
                 .halves = numbers.halves,
                 .stride = factor.columns,
                 .num_rows = rows_of(first_chunk + chunk),
                 .num_columns = std::min(factor.block_columns(), factor.columns - column),
                 .width = factor.width,
                 .round_to_bfloat16 = options_.type == DenseType::bf16,
                 .panels = factor.panel(chunk, column / factor.width),
                 .panel_stride = factor.panel_units(),
                 .column_sums = sums});
  }

  // How the gradient is cut into tiles changes no bit: each number is the sum of its chunks, in their order.
  void multiply(const Round& round) const {
    const std::int64_t wide = std::max<std::int64_t>(1, kTileColumns / right_.width);
    const std::int64_t right_parts = parts_of(right_.panels(), wide);
    const std::int64_t enough = parts_of(4 * static_cast<std::int64_t>(num_threads()), right_parts);
    const std::int64_t high = std::clamp<std::int64_t>(left_.panels() / enough, 1, kMostPanels);
    parallel_for(0, parts_of(left_.panels(), high) * right_parts, 1, [&](std::int64_t tile, std::int64_t) {
      const std::int64_t first_left = tile / right_parts * high;
      const std::int64_t first_right = tile % right_parts * wide;
      const std::int64_t end_left = std::min(left_.panels(), first_left + high);
      const std::int64_t end_right = std::min(right_.panels(), first_right + wide);
      for (std::int64_t chunk = 0; chunk < round.chunks; ++chunk) {
        for (std::int64_t right = first_right; right < end_right; ++right) {
          for (std::int64_t left = first_left; left < end_left; ++left) multiply_panels(round, chunk, left, right);
        }
      }
    });
  }

  void multiply_panels(const Round& round, std::int64_t chunk, std::int64_t left, std::int64_t right) const {
    const std::int64_t row = left * left_.width;
    const std::int64_t column = right * right_.width;
    loops_.multiply({.left = left_.panel(chunk, left),
                     .right = right_.panel(chunk, right),
                     .num_steps = parts_of(rows_of(round.first_chunk + chunk), loops_.rows_per_step),
                     .gradient = gradients_.weight + row * right_.columns + column,
                     .stride = right_.columns,
                     .num_rows = std::min(left_.width, left_.columns - row),
                     .num_columns = std::min(right_.width, right_.columns - column),
                     .accumulate = options_.accumulate || round.first_chunk + chunk > 0});
  }

  void add_bias(const Round& round) const {
    for (std::int64_t chunk = 0; chunk < round.chunks; ++chunk) {
      const float* sums = left_.column_sums + chunk * left_.columns;
      for (std::int64_t column = 0; column < left_.columns; ++column) gradients_.bias[column] += sums[column];
    }
  }

  const GradientOptions& options_;
  const WeightGradients& gradients_;
  const GradientLoops& loops_;
  Factor left_, right_;
  std::vector<float> sums_;
  std::int64_t num_rows_ = 0;
  std::int64_t chunk_rows_ = 0;
  std::int64_t round_chunks_ = 0;
};

}  // namespace

std::optional<GradientLoops> gradient_loops([[maybe_unused]] DenseType type) {
#if defined(__x86_64__)
  const Isa isa = active_isa();
  if (type == DenseType::bf16) {
    if (includes(isa, Isa::amx)) return std::nullopt;
    if (includes(isa, Isa::avx512_bf16)) return gradient_loops_avx512_bf16();
  }
  if (includes(isa, Isa::avx512)) return gradient_loops_avx512();
  if (includes(isa, Isa::avx2)) return gradient_loops_avx2();
#endif
  return std::nullopt;
}

void weight_gradient_by_panels(const GradientInputs& inputs, WeightShape shape, const GradientOptions& options,
                               const WeightGradients& gradients, const GradientLoops& loops) {
  PanelGradient(inputs, shape, options, gradients, loops).run();
}

}  // namespace routing::kernels
