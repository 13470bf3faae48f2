#include "routing/kernels/dense/dense_sum_order.h"

#include "routing/core/random.h"
#include "routing/kernels/dispatch/isa.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

namespace routing::kernels {
namespace {

using Floats = std::vector<float>;

// One more than this cannot be told from it in float32, two more can.
constexpr float kBig = 0x1.0p24F;
// So many outputs have to agree at least. Narrow panels need several rounds, each with other weights: a single unlucky
// weight could hide in all rows how its products are rounded.
constexpr std::int64_t kOutputsToCompare = 2048;

// A panel with weights of ours, and both ways to multiply with it.
class Probe {
 public:
  Probe(const MatmulKey& key, const Floats& weights, const Floats& bias)
      : key_(key),
        bias_(bias),
        matmul_(matmul_for(key)),
        panel_(matmul_->description.weights_desc(), cpu_engine()),
        row_outputs_(static_cast<std::size_t>(key.rows * key.columns)) {
    const OneThread one_thread;
    const dnnl::memory::desc plain({key.depth, key.columns}, dnnl::memory::data_type::f32,
                                   dnnl::memory::dims{key.columns, 1});
    dnnl::memory from(plain, cpu_engine(), const_cast<float*>(weights.data()));
    dnnl::stream stream(cpu_engine());
    dnnl::reorder(from, panel_).execute(stream, from, panel_);
  }

  // [rows of the key, depth] -> outputs with the stride of the key.
  const float* by_block(const Floats& rows) {
    const OneThread one_thread;
    MatmulRun run(matmul_, workspace_);
    if (key_.bias) run.set_bias(bias_.data());
    // Not a vector: rows may lie far apart, and what nobody touches between them costs nothing.
    auto* outputs = outputs_.get<float>(key_.rows * key_.output_stride);
    run(converted(rows), panel_, outputs);
    return outputs;
  }

  // -> [rows of the key, columns]
  const Floats& by_rows(const Floats& rows, const SumOrder& order, RowLoop loop) {
    loop({.rows = converted(rows),
          .num_rows = key_.rows,
          .depth = key_.depth,
          .weights = row_weights(panel_),
          .order = order,
          .bias = key_.bias ? bias_.data() : nullptr,
          .relu = key_.relu,
          .outputs = row_outputs_.data(),
          .output_stride = key_.columns},
         0, key_.columns);
    return row_outputs_;
  }

 private:
  const void* converted(const Floats& rows) {
    return convert_rows({.rows = rows.data(), .num_rows = key_.rows, .width = key_.depth, .filled_rows = key_.rows},
                        key_.type, left_);
  }

  MatmulKey key_;
  const Floats& bias_;
  std::shared_ptr<const Matmul> matmul_;
  dnnl::memory panel_;
  Floats row_outputs_;
  Scratch left_, outputs_, workspace_;
};

// Which of first … end-1 is the first whose row of numbers sums up to `least` or more? If one is, all behind it are.
// The answer is end if none is. Each run of the block asks about as many as it has rows.
struct Search {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::function<void(std::int64_t, float*)> write_row;
  float least = 0.0F;
};

std::int64_t first_answered(Probe& probe, const MatmulKey& key, Search search) {
  while (search.first < search.end) {
    const std::int64_t step = (search.end - search.first + key.rows - 1) / key.rows;
    Floats rows(static_cast<std::size_t>(key.rows * key.depth), 0.0F);
    // The last one of each stretch, so that an answer tells which stretch holds the first.
    const auto asked = [&](std::int64_t row) { return std::min(search.first + (row + 1) * step, search.end) - 1; };
    for (std::int64_t row = 0; row < key.rows; ++row) search.write_row(asked(row), rows.data() + row * key.depth);
    const float* answers = probe.by_block(rows);
    std::int64_t row = 0;
    while (row < key.rows && answers[row * key.output_stride] < search.least) ++row;
    if (row == key.rows) return search.end;
    const std::int64_t found = asked(row);
    if (step == 1) return found;
    search.first += row * step;
    search.end = found + 1;
  }
  return search.end;
}

// What the sums of telling numbers say. A chain of one number at the very end says nothing, so there may be two
// guesses.
std::vector<SumOrder> guess_orders(const MatmulKey& key) {
  const std::int64_t depth = key.depth;
  const Floats ones(static_cast<std::size_t>(depth * key.columns), 1.0F);
  const Floats zeros(static_cast<std::size_t>(key.columns), 0.0F);
  Probe probe(key, ones, zeros);
  // A big number first, then ones up to here: the first chain swallows its ones, the second shows its first two.
  const std::int64_t second_shown = first_answered(probe, key,
                                                   {.first = 1,
                                                    .end = depth,
                                                    .write_row =
                                                        [&](std::int64_t here, float* row) {
                                                          row[0] = kBig;
                                                          std::fill(row + 1, row + here + 1, 1.0F);
                                                        },
                                                    .least = kBig + 2.0F});
  // A big number first, a one here, the big number's opposite last: only the last chain keeps the one.
  const std::int64_t kept = first_answered(probe, key,
                                           {.first = 1,
                                            .end = depth - 1,
                                            .write_row =
                                                [&](std::int64_t here, float* row) {
                                                  row[0] = kBig;
                                                  row[here] = 1.0F;
                                                  row[depth - 1] = -kBig;
                                                },
                                            .least = 1.0F});
  if (second_shown < depth) return {{.block = second_shown - 1, .last = std::min(kept, depth - 1)}};
  std::vector<SumOrder> guesses{{.block = depth, .last = 0}};
  if (depth > 1) guesses.push_back({.block = depth, .last = depth - 1});
  return guesses;
}

// Any sign and any mantissa, sizes over six powers of two: few sums of these have the same bits in another order.
float random_float(RandomStream& stream) {
  const std::uint32_t bits = stream.next_u32();
  const std::uint32_t exponent = 124U + (bits >> 23U & 0xffU) % 6U;
  return std::bit_cast<float>((bits & 0x807fffffU) | exponent << 23U);
}

Floats random_floats(std::int64_t count, RandomStream& stream) {
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = random_float(stream);
  return values;
}

// Every second row has numbers in a short stretch only: at the end, where a part of the sum ends, or anywhere. In a
// long sum, single terms hardly show.
Floats random_rows(const MatmulKey& key, const SumOrder& order, RandomStream& stream) {
  Floats rows = random_floats(key.rows * key.depth, stream);
  for (std::int64_t row = 0; row < key.rows; row += 2) {
    const auto anywhere = static_cast<std::int64_t>(stream.below(static_cast<std::uint32_t>(key.depth)));
    const std::array middles{key.depth, std::min(order.block, key.depth), order.last, anywhere};
    const std::int64_t middle = middles[static_cast<std::size_t>(row / 2) % middles.size()];
    float* numbers = rows.data() + row * key.depth;
    std::fill(numbers, numbers + std::max<std::int64_t>(0, middle - 3), 0.0F);
    std::fill(numbers + std::min(key.depth, middle + 3), numbers + key.depth, 0.0F);
  }
  // What is rare: nothing at all, no number, infinity, sums below the normal range, results of -0.
  float* rare = rows.data() + (key.rows - 5) * key.depth;
  std::fill(rare, rare + key.depth, 0.0F);
  rare[key.depth + key.depth / 2] = std::numeric_limits<float>::quiet_NaN();
  rare[2 * key.depth] = std::numeric_limits<float>::infinity();
  for (std::int64_t k = 0; k < key.depth; ++k) {
    rare[3 * key.depth + k] *= 0x1.0p-125F;
    rare[4 * key.depth + k] = -std::numeric_limits<float>::min();
  }
  return rows;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

bool repeats_the_block(const MatmulKey& key, const SumOrder& order, RowLoop loop) {
  RandomStream stream(1, "dense sum order");
  const std::int64_t rounds = 1 + (kOutputsToCompare - 1) / (key.rows * key.columns);
  Floats weights;
  for (std::int64_t round = 0; round <= rounds; ++round) {
    if (round < rounds) {
      weights = random_floats(key.depth * key.columns, stream);
    } else {
      // One round more, in which products vanish: a sum of nothing but these may be 0 or -0.
      for (float& weight : weights) weight *= 0x1.0p-100F;
    }
    const Floats bias = random_floats(key.columns, stream);
    const Floats rows = random_rows(key, order, stream);
    Probe probe(key, weights, bias);
    const float* expected = probe.by_block(rows);
    const Floats& found = probe.by_rows(rows, order, loop);
    for (std::int64_t row = 0; row < key.rows; ++row) {
      const float* line = expected + row * key.output_stride;
      if (!std::equal(line, line + key.columns, found.data() + row * key.columns, same_bits)) return false;
    }
  }
  return true;
}

}  // namespace

RowWeights row_weights(const dnnl::memory& panel) {
  using Tag = dnnl::memory::format_tag;
  constexpr std::int64_t kStrip = 64;
  const dnnl::memory::desc layout = panel.get_desc();
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::memory::dims dims = layout.get_dims();
  const auto type = layout.get_data_type();
#else
  const dnnl::memory::dims dims = layout.dims();
  const auto type = layout.data_type();
#endif
  const std::int64_t depth = dims[0];
  const std::int64_t columns = dims[1];
  const bool halves = type == dnnl::memory::data_type::bf16;
  RowWeights weights{.columns = columns};
  if (layout == dnnl::memory::desc(dims, type, dnnl::memory::dims{columns, 1})) {
    weights.strip_columns = columns;
    weights.depth_stride = columns;
  } else if (layout == dnnl::memory::desc(dims, type, halves ? Tag::BA16a64b2a : Tag::BA16a64b)) {
    const std::int64_t rows_together = halves ? 32 : 16;
    weights.strip_columns = kStrip;
    weights.depth_stride = kStrip;
    weights.strip_stride = (depth + rows_together - 1) / rows_together * rows_together * kStrip;
    weights.paired = halves;
  } else {
    return weights;
  }
  weights.values = panel.get_data_handle();
  return weights;
}

RowLoop row_loop([[maybe_unused]] DenseType type) {
#if defined(__x86_64__)
  const Isa isa = active_isa();
  if (type == DenseType::bf16 && multiplies_bfloat16()) {
    return includes(isa, Isa::avx512_bf16) ? multiply_rows_avx512_bf16 : nullptr;
  }
  if (includes(isa, Isa::avx512)) return multiply_rows_avx512;
  if (includes(isa, Isa::avx2)) return multiply_rows_avx2;
#endif
  return nullptr;
}

SumOrder find_sum_order(const MatmulKey& key, RowLoop loop) {
  const dnnl::memory panel(matmul_for(key)->description.weights_desc(), cpu_engine(), DNNL_MEMORY_NONE);
  const RowWeights weights = row_weights(panel);
  if (loop == nullptr || weights.strip_columns == 0) return {};
  for (const SumOrder& order : guess_orders(key)) {
    const bool odd = (order.block < key.depth && order.block % 2 != 0) || order.last % 2 != 0;
    if (weights.paired && odd) continue;  // the loops cannot part what lies there as a pair
    if (repeats_the_block(key, order, loop)) return order;
  }
  return {};
}

SumOrder sum_order_for(const MatmulKey& key, RowLoop loop) {
  static std::mutex mutex;
  static std::map<RowLoop, std::unordered_map<MatmulKey, SumOrder, MatmulKeyHash>> orders;
  {
    const std::lock_guard lock(mutex);
    const auto& known = orders[loop];
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  const SumOrder order = find_sum_order(key, loop);
  const std::lock_guard lock(mutex);
  return orders[loop].emplace(key, order).first->second;
}

}  // namespace routing::kernels
