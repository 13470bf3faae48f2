// Runs several times in ctest, each time with another DNNL_MAX_CPU_ISA.
#include "routing/kernels/dense/dense_rows.h"

#include "routing/core/parallel.h"
#include "routing/core/random.h"
#include "routing/kernels/dense/dense.h"
#include "routing/kernels/dense/dense_sum_order.h"
#include "routing/kernels/dispatch/isa.h"
#include "routing/kernels/pointwise/bfloat16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

namespace routing::kernels::dense_rows_test {
namespace {

using Floats = std::vector<float>;
using Halves = std::vector<std::uint16_t>;

constexpr std::int64_t kBlock = 64;

bool machine_has(Isa isa) {
  const auto& isas = supported_isas();
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

Floats normal_numbers(std::int64_t count, std::uint64_t seed) {
  RandomStream stream(seed, "dense rows test");
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(stream.normal());
  return values;
}

// Small enough for every sum to be exact in float32, and for every number to be a bfloat16.
Floats whole_numbers(std::int64_t count, std::uint64_t seed) {
  RandomStream stream(seed, "dense rows test");
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(stream.below(17)) - 8.0F;
  return values;
}

Halves halves_of(const Floats& values) {
  Halves halves(values.size());
  to_bfloat16(values.data(), static_cast<std::int64_t>(values.size()), halves.data());
  return halves;
}

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// The sum as dense_rows.h describes it.
float sum_in_order(const float* row, const Floats& weights, std::int64_t columns, std::int64_t column,
                   const std::vector<std::int64_t>& part_ends) {
  float total = 0.0F;
  std::int64_t k = 0;
  for (const std::int64_t end : part_ends) {
    const bool first = k == 0;
    float sum = 0.0F;
    for (; k < end; ++k) sum = std::fma(row[k], weights[index(k * columns + column)], sum);
    total = first ? sum : total + sum;
  }
  return total;
}

// weights [depth, columns] in strips of 64 columns, filled up with zeros. With pairs, two neighbours in depth stand
// side by side.
template <class Number>
std::vector<Number> in_strips(const std::vector<Number>& weights, std::int64_t depth, std::int64_t columns,
                              bool paired) {
  const std::int64_t filled = (depth + 31) / 32 * 32;
  std::vector<Number> strips(index((columns + 63) / 64 * 64 * filled), Number{});
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t inside = paired ? k / 2 * 128 + c % 64 * 2 + k % 2 : k * 64 + c % 64;
      strips[index(c / 64 * filled * 64 + inside)] = weights[index(k * columns + c)];
    }
  }
  return strips;
}

RowWeights plain_layout(const void* values, std::int64_t columns) {
  return {.values = values, .columns = columns, .strip_columns = columns, .depth_stride = columns};
}
RowWeights strip_layout(const void* values, std::int64_t depth, std::int64_t columns, bool paired) {
  return {.values = values,
          .columns = columns,
          .strip_columns = 64,
          .strip_stride = (depth + 31) / 32 * 32 * 64,
          .depth_stride = 64,
          .paired = paired};
}

struct Level {
  const char* name;
  Isa isa;
  RowLoop loop;
};
std::vector<Level> float_levels() {
  std::vector<Level> levels;
  if (machine_has(Isa::avx2)) levels.push_back({"avx2", Isa::avx2, multiply_rows_avx2});
  if (machine_has(Isa::avx512)) levels.push_back({"avx512", Isa::avx512, multiply_rows_avx512});
  return levels;
}

struct OrderCase {
  std::int64_t depth;
  SumOrder order;
  std::vector<std::int64_t> part_ends;
};
const std::vector<OrderCase> kOrders{
    {1, {1, 0}, {1}},         {7, {7, 0}, {7}},
    {7, {3, 6}, {3, 6, 7}},   {40, {16, 32}, {16, 32, 40}},
    {41, {41, 40}, {40, 41}}, {110, {51, 108}, {51, 102, 108, 110}},
};

TEST(DenseRows, TwoRowsByHand) {
  const Floats rows{1.0F, 2.0F, 3.0F, -1.0F};
  const Floats weights{10.0F, 20.0F, 30.0F, 1.0F, 2.0F, -3.0F};
  const Floats bias{0.5F, 0.0F, -25.0F};
  for (const Level& level : float_levels()) {
    Floats outputs(6, -7.0F);
    RowProduct product{.rows = rows.data(),
                       .num_rows = 2,
                       .depth = 2,
                       .weights = plain_layout(weights.data(), 3),
                       .order = {.block = 2, .last = 0},
                       .outputs = outputs.data(),
                       .output_stride = 3};
    level.loop(product, 0, 3);
    EXPECT_EQ(outputs, (Floats{12.0F, 24.0F, 24.0F, 29.0F, 58.0F, 93.0F})) << level.name;
    product.bias = bias.data();
    product.relu = true;
    level.loop(product, 0, 3);
    EXPECT_EQ(outputs, (Floats{12.5F, 24.0F, 0.0F, 29.5F, 58.0F, 68.0F})) << level.name;
  }
}

// 2^24 swallows a one that comes alone, but not a sum of two: the result tells how the parts were cut.
TEST(DenseRows, PartsOfASumAreAddedAfterwards) {
  const Floats row{0x1.0p24F, 0.0F, 1.0F, 0.0F, 1.0F, 0.0F};
  const Floats ones(6, 1.0F);
  const Halves half_row = halves_of(row);
  const Halves half_ones = halves_of(ones);
  for (const auto& [order, expected] : {std::pair{SumOrder{6, 0}, 0x1.0p24F},
                                        {SumOrder{2, 4}, 0x1.0p24F},
                                        {SumOrder{4, 4}, 0x1.0p24F},
                                        {SumOrder{4, 2}, 0x1.0p24F + 2.0F}}) {
    float output = 0.0F;
    RowProduct product{.rows = row.data(),
                       .num_rows = 1,
                       .depth = 6,
                       .weights = plain_layout(ones.data(), 1),
                       .order = order,
                       .outputs = &output,
                       .output_stride = 1};
    for (const Level& level : float_levels()) {
      level.loop(product, 0, 1);
      EXPECT_EQ(output, expected) << level.name << " " << order.block << " " << order.last;
    }
    if (!machine_has(Isa::avx512_bf16)) continue;
    product.rows = half_row.data();
    product.weights = plain_layout(half_ones.data(), 1);
    multiply_rows_avx512_bf16(product, 0, 1);
    EXPECT_EQ(output, expected) << order.block << " " << order.last;
  }
}

TEST(DenseRows, FloatsEqualPlainLoopsInTheSameOrder) {
  for (const auto& [depth, order, part_ends] : kOrders) {
    for (const std::int64_t columns : {1, 5, 16, 31, 64, 70, 128, 200, 256, 300}) {
      const Floats rows = normal_numbers(14 * depth, 1);
      const Floats weights = normal_numbers(depth * columns, 2);
      const Floats strips = in_strips(weights, depth, columns, false);
      for (const Level& level : float_levels()) {
        for (const RowWeights& layout :
             {plain_layout(weights.data(), columns), strip_layout(strips.data(), depth, columns, false)}) {
          for (const std::int64_t num_rows : {1, 2, 3, 6, 14}) {
            // One column more than there is: nobody may write there.
            const std::int64_t stride = columns + 1;
            Floats outputs(index(num_rows * stride), -7.0F);
            const std::int64_t middle = columns / 128 * 64;
            const RowProduct product{.rows = rows.data(),
                                     .num_rows = num_rows,
                                     .depth = depth,
                                     .weights = layout,
                                     .order = order,
                                     .outputs = outputs.data(),
                                     .output_stride = stride};
            level.loop(product, 0, middle);
            level.loop(product, middle, columns);
            for (std::int64_t r = 0; r < num_rows; ++r) {
              for (std::int64_t c = 0; c < columns; ++c) {
                ASSERT_EQ(outputs[index(r * stride + c)],
                          sum_in_order(rows.data() + r * depth, weights, columns, c, part_ends))
                    << level.name << ", " << num_rows << " rows, " << depth << " deep, column " << c << " of "
                    << columns;
              }
              ASSERT_EQ(outputs[index(r * stride + columns)], -7.0F);
            }
          }
        }
      }
    }
  }
}

// Exact sums: what is left to get wrong is which numbers meet.
TEST(DenseRows, HalvesEqualPlainLoopsOnWholeNumbers) {
  if (!machine_has(Isa::avx512_bf16)) GTEST_SKIP() << "no bfloat16 arithmetic";
  for (const auto& [depth, order, part_ends] : kOrders) {
    const bool odd_parts = std::any_of(part_ends.begin(), part_ends.end() - 1, [](auto end) { return end % 2 != 0; });
    for (const std::int64_t columns : {1, 5, 16, 31, 64, 70, 128, 200, 256, 300}) {
      const Floats rows = whole_numbers(14 * depth, 1);
      const Floats weights = whole_numbers(depth * columns, 2);
      const Halves half_rows = halves_of(rows);
      const Halves half_weights = halves_of(weights);
      const Halves strips = in_strips(half_weights, depth, columns, true);
      for (const RowWeights& layout :
           {plain_layout(half_weights.data(), columns), strip_layout(strips.data(), depth, columns, true)}) {
        if (layout.paired && odd_parts) continue;
        for (const std::int64_t num_rows : {1, 2, 3, 6, 14}) {
          const std::int64_t stride = columns + 1;
          Floats outputs(index(num_rows * stride), -7.0F);
          multiply_rows_avx512_bf16({.rows = half_rows.data(),
                                     .num_rows = num_rows,
                                     .depth = depth,
                                     .weights = layout,
                                     .order = order,
                                     .outputs = outputs.data(),
                                     .output_stride = stride},
                                    0, columns);
          for (std::int64_t r = 0; r < num_rows; ++r) {
            for (std::int64_t c = 0; c < columns; ++c) {
              ASSERT_EQ(outputs[index(r * stride + c)],
                        sum_in_order(rows.data() + r * depth, weights, columns, c, part_ends))
                  << num_rows << " rows, " << depth << " deep, column " << c << " of " << columns << ", paired "
                  << layout.paired;
            }
            ASSERT_EQ(outputs[index(r * stride + columns)], -7.0F);
          }
        }
      }
    }
  }
}

Floats product_of(const float* x, std::int64_t rows, const PackedMatrix& matrix, const DenseOptions& options) {
  Floats y(index(rows * matrix.columns()), -77.0F);
  dense_product(x, rows, matrix, options, y.data());
  return y;
}

// At the best level of the machine, whatever the environment says.
class FewRows : public ::testing::TestWithParam<DenseType> {
 protected:
  void SetUp() override { set_active_isa(supported_isas().back()); }
  void TearDown() override {
    set_num_threads(available_cores());
    set_active_isa(supported_isas().back());
  }
};

// Whole blocks are oneDNN's alone; everything else must have their bits.
TEST_P(FewRows, HaveTheBitsOfABlockInEveryShape) {
  for (const std::int64_t in : {1, 2, 3, 17, 64, 100, 256, 512, 513, 1024, 2048, 4096}) {
    const Floats x = normal_numbers(kBlock * in, 3);
    for (const std::int64_t out : {1, 5, 16, 31, 64, 100, 255, 256, 257, 512, 1000}) {
      if (in * out > 1100000) continue;
      const Floats w = normal_numbers(out * in, 4);
      const Floats bias = normal_numbers(out, 5);
      const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {out, in}, GetParam());
      for (const DenseOptions& options : {DenseOptions{}, DenseOptions{.bias = bias.data(), .relu = true}}) {
        const Floats block = product_of(x.data(), kBlock, matrix, options);
        for (const std::int64_t rows : {1, 7}) {
          for (const std::int64_t first : {0, 25}) {
            const Floats part = product_of(x.data() + first * in, rows, matrix, options);
            ASSERT_EQ(std::memcmp(part.data(), block.data() + first * out, part.size() * sizeof(float)), 0)
                << rows << " rows from " << first << ", " << in << " to " << out;
          }
        }
      }
    }
  }
}

TEST_P(FewRows, HaveTheBitsOfABlockInEveryNumberAndBehindBlocks) {
  constexpr std::int64_t kRows = 1000;
  for (const auto& [in, out] : std::vector<std::pair<std::int64_t, std::int64_t>>{{48, 70}, {512, 512}, {513, 257}}) {
    const Floats x = normal_numbers(16 * kBlock * in, 6);
    const Floats w = normal_numbers(out * in, 7);
    const Floats bias = normal_numbers(out, 8);
    const PackedMatrix forwards = PackedMatrix::for_forward(w.data(), {out, in}, GetParam());
    const PackedMatrix backwards = PackedMatrix::for_data_gradient(w.data(), {in, out}, GetParam());
    for (const auto& [matrix, options] :
         {std::pair{forwards, DenseOptions{.bias = bias.data()}}, {backwards, DenseOptions{.relu = true}}}) {
      set_num_threads(1);
      const Floats whole = product_of(x.data(), 16 * kBlock, matrix, options);
      for (const int threads : {1, 2}) {
        set_num_threads(threads);
        std::vector<std::int64_t> counts{63, 64, 65, 130, kRows};
        for (std::int64_t rows = 1; rows <= 42; ++rows) counts.push_back(rows);
        for (const std::int64_t rows : counts) {
          const std::int64_t first = std::min<std::int64_t>(13, kRows - rows);
          const Floats part = product_of(x.data() + first * in, rows, matrix, options);
          ASSERT_EQ(std::memcmp(part.data(), whole.data() + first * out, part.size() * sizeof(float)), 0)
              << rows << " rows, " << in << " to " << out << ", " << threads << " threads";
        }
      }
    }
  }
}

TEST_P(FewRows, HaveTheBitsOfABlockWhereNumbersAreRare) {
  constexpr std::int64_t kIn = 300, kOut = 256;
  Floats x = normal_numbers(kBlock * kIn, 9);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  x[kIn + 7] = std::numeric_limits<float>::infinity();
  for (std::int64_t k = 0; k < kIn; ++k) x[index(2 * kIn + k)] *= 0x1.0p-126F;
  for (std::int64_t k = 0; k < kIn; ++k) x[index(3 * kIn + k)] = -0.0F;
  const Floats w = normal_numbers(kOut * kIn, 10);
  const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {kOut, kIn}, GetParam());
  for (const bool relu : {false, true}) {
    const Floats block = product_of(x.data(), kBlock, matrix, {.relu = relu});
    for (std::int64_t row = 0; row < 4; ++row) {
      const Floats alone = product_of(x.data() + row * kIn, 1, matrix, {.relu = relu});
      for (std::int64_t c = 0; c < kOut; ++c) {
        const float expected = block[index(row * kOut + c)];
        ASSERT_EQ(std::isnan(alone[index(c)]), std::isnan(expected));
        if (std::isnan(expected)) continue;
        ASSERT_EQ(alone[index(c)], expected) << row << " " << c;
        ASSERT_EQ(std::signbit(alone[index(c)]), std::signbit(expected)) << row << " " << c;
      }
    }
  }
}

// If this fails with another oneDNN, results are still right, but decoding is many times slower.
TEST_P(FewRows, AreComputedOneByOneForTheShapesOfModels) {
  if (!machine_has(Isa::avx2) || machine_has(Isa::amx)) GTEST_SKIP() << "oneDNN is known to add up in another order";
  const Floats w = normal_numbers(2048 * 512, 11);
  const Floats bias = normal_numbers(2048, 12);
  for (const WeightShape& shape : {WeightShape{512, 512}, {2048, 512}, {512, 2048}, {1536, 512}, {256, 256}}) {
    const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), shape, GetParam());
    EXPECT_TRUE(rows_match_blocks(matrix, {})) << shape.out << " " << shape.in;
    EXPECT_TRUE(rows_match_blocks(matrix, {.bias = bias.data()})) << shape.out << " " << shape.in;
    EXPECT_TRUE(rows_match_blocks(matrix, {.bias = bias.data(), .relu = true})) << shape.out << " " << shape.in;
    EXPECT_FALSE(rows_match_blocks(matrix, {.accumulate = true}));
    EXPECT_FALSE(rows_match_blocks(matrix, {.relu_outputs = w.data()}));
  }
}

TEST_P(FewRows, HaveTheSameBitsAtEveryLevel) {
  constexpr std::int64_t kIn = 513, kOut = 300;
  const Floats x = normal_numbers(3 * kIn, 13);
  const Floats w = normal_numbers(kOut * kIn, 14);
  const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {kOut, kIn}, GetParam());
  set_active_isa(Isa::generic);
  EXPECT_FALSE(rows_match_blocks(matrix, {}));
  const Floats expected = product_of(x.data(), 3, matrix, {});
  for (const Isa isa : supported_isas()) {
    set_active_isa(isa);
    const Floats rows = product_of(x.data(), 3, matrix, {});
    EXPECT_EQ(std::memcmp(rows.data(), expected.data(), rows.size() * sizeof(float)), 0) << to_string(isa);
  }
}

// The first products of a shape, which find out the order, from many threads.
TEST_P(FewRows, MayBeAskedForByManyThreadsAtOnce) {
  constexpr std::int64_t kIn = 123, kOut = 321;
  const Floats x = normal_numbers(kBlock * kIn, 15);
  const Floats w = normal_numbers(kOut * kIn, 16);
  const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {kOut, kIn}, GetParam());
  std::vector<Floats> results(4);
  std::vector<std::thread> threads;
  for (Floats& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) result = product_of(x.data(), 5, matrix, {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Floats block = product_of(x.data(), kBlock, matrix, {});
  for (const Floats& result : results) {
    EXPECT_EQ(std::memcmp(result.data(), block.data(), result.size() * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(BothTypes, FewRows, ::testing::Values(DenseType::fp32, DenseType::bf16),
                         [](const auto& instance) { return instance.param == DenseType::fp32 ? "fp32" : "bf16"; });

// Loops that are right but for a single thing.
void one_bit_wrong(const RowProduct& product, std::int64_t first, std::int64_t end) {
  row_loop(DenseType::fp32)(product, first, end);
  float& last = product.outputs[40 * product.output_stride + end - 1];
  last = std::nextafter(last, 1e30F);
}
void one_chain(const RowProduct& product, std::int64_t first, std::int64_t end) {
  RowProduct other = product;
  other.order = {.block = product.depth, .last = 0};
  row_loop(DenseType::fp32)(other, first, end);
}
void parts_of_eight(const RowProduct& product, std::int64_t first, std::int64_t end) {
  RowProduct other = product;
  other.order = {.block = 8, .last = 0};
  row_loop(DenseType::fp32)(other, first, end);
}
void last_product_rounded(const RowProduct& product, std::int64_t first, std::int64_t end) {
  RowProduct other = product;
  other.order.last = product.depth - 1;
  row_loop(DenseType::fp32)(other, first, end);
}
// Multiplies, rounds, adds: what a fused multiply-add does not.
void products_rounded(const RowProduct& product, std::int64_t first, std::int64_t end) {
  RowProduct other = product;
  other.order = {.block = 1, .last = 0};
  row_loop(DenseType::fp32)(other, first, end);
}
void relu_keeps_minus_zero(const RowProduct& product, std::int64_t first, std::int64_t end) {
  RowProduct other = product;
  other.relu = false;
  row_loop(DenseType::fp32)(other, first, end);
  if (!product.relu) return;
  for (std::int64_t r = 0; r < product.num_rows; ++r) {
    for (std::int64_t c = first; c < end; ++c) {
      float& value = product.outputs[r * product.output_stride + c];
      if (value < 0.0F) value = -0.0F;
    }
  }
}

TEST(SumOrder, LoopsThatDifferInABitAreRefused) {
  if (!machine_has(Isa::avx2)) GTEST_SKIP() << "no loops for this processor";
  set_active_isa(supported_isas().back());
  for (const std::int64_t depth : {2, 3, 100}) {
    for (const std::int64_t columns : {1, 16, 256}) {
      const MatmulKey key{.rows = kBlock,
                          .depth = depth,
                          .columns = columns,
                          .left_stride = depth,
                          .output_stride = columns,
                          .relu = true};
      // oneDNN without AVX-512 has an order of its own for single columns.
      const SumOrder order = find_sum_order(key, row_loop(DenseType::fp32));
      EXPECT_TRUE(order.known() || columns == 1) << depth << " " << columns;
      EXPECT_FALSE(find_sum_order(key, one_bit_wrong).known()) << depth << " " << columns;
      EXPECT_FALSE(find_sum_order(key, relu_keeps_minus_zero).known()) << depth << " " << columns;
      EXPECT_FALSE(find_sum_order(key, nullptr).known()) << depth << " " << columns;
      if (columns == 1 && order != SumOrder{depth, 0}) continue;
      EXPECT_EQ(find_sum_order(key, parts_of_eight).known(), depth <= 8) << depth << " " << columns;
      EXPECT_FALSE(find_sum_order(key, last_product_rounded).known()) << depth << " " << columns;
      EXPECT_FALSE(find_sum_order(key, products_rounded).known()) << depth << " " << columns;
    }
  }
}

TEST(SumOrder, ACutSumIsNotTakenForOneChain) {
  if (!machine_has(Isa::avx2)) GTEST_SKIP() << "no loops for this processor";
  set_active_isa(supported_isas().back());
  const MatmulKey key{.rows = kBlock, .depth = 3000, .columns = 64, .left_stride = 3000, .output_stride = 64};
  const SumOrder order = find_sum_order(key, row_loop(DenseType::fp32));
  ASSERT_TRUE(order.known());
  EXPECT_LT(order.block, 3000);
  EXPECT_EQ(order, sum_order_for(key, row_loop(DenseType::fp32)));
  EXPECT_EQ(order, sum_order_for(key, row_loop(DenseType::fp32)));
  EXPECT_FALSE(find_sum_order(key, one_chain).known());
}

TEST(SumOrder, LayoutsThatNoLoopReadsHaveNoWeights) {
  using dnnl::memory;
  const memory turned({{3, 5}, memory::data_type::f32, memory::format_tag::ba}, cpu_engine());
  EXPECT_EQ(row_weights(turned).values, nullptr);
  const memory plain({{3, 5}, memory::data_type::f32, memory::format_tag::ab}, cpu_engine());
  EXPECT_EQ(row_weights(plain).values, plain.get_data_handle());
  EXPECT_EQ(row_weights(plain).depth_stride, 5);
}

}  // namespace
}  // namespace routing::kernels::dense_rows_test
