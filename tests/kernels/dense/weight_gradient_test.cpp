// weight_gradient at every instruction set that runs here, against numbers by hand and plain loops in double.
#include "routing/core/parallel.h"
#include "routing/core/random.h"
#include "routing/kernels/dense/dense.h"
#include "routing/kernels/dense/gradient_panels.h"
#include "routing/kernels/dispatch/isa.h"
#include "routing/kernels/pointwise/bfloat16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace routing::kernels::weight_gradient_test {
namespace {

using Floats = std::vector<float>;

struct Shape {
  std::int64_t rows, out, in;
};

struct Gradients {
  Floats weight, bias;
};

Floats normal_numbers(std::int64_t count, std::uint64_t seed) {
  RandomStream stream(seed, "weight gradient test");
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(stream.normal());
  return values;
}

class WeightGradient : public ::testing::TestWithParam<std::tuple<Isa, DenseType>> {
 protected:
  void SetUp() override { set_active_isa(std::get<0>(GetParam())); }
  void TearDown() override {
    set_active_isa(supported_isas().back());
    set_num_threads(available_cores());
  }
  static DenseType type() { return std::get<1>(GetParam()); }

  static Floats as_multiplied(Floats values) {
    if (type() == DenseType::bf16) {
      round_to_bfloat16(values.data(), static_cast<std::int64_t>(values.size()), values.data());
    }
    return values;
  }
};

// dY = [[1, 2], [3, 4], [5, 6]], X = [[1, 0, 2], [0, 1, 1], [2, 2, 0]]
TEST_P(WeightGradient, ThreeRowsByHand) {
  const Floats dy{1, 2, 3, 4, 5, 6};
  const Floats x{1, 0, 2, 0, 1, 1, 2, 2, 0};
  const Floats expected{11, 13, 5, 14, 16, 8};
  Floats dw(6, -7.0F);
  Floats db(2, -7.0F);
  weight_gradient({dy.data(), x.data(), 3}, {.out = 2, .in = 3}, {.type = type()}, {dw.data(), db.data()});
  EXPECT_EQ(dw, expected);
  EXPECT_EQ(db, (Floats{9, 12}));
  weight_gradient({dy.data(), x.data(), 3}, {.out = 2, .in = 3}, {.type = type(), .accumulate = true},
                  {dw.data(), db.data()});
  EXPECT_EQ(dw, (Floats{22, 26, 10, 28, 32, 16}));
  EXPECT_EQ(db, (Floats{18, 24}));
}

// Panels that are not full, pairs without a second row, one row, chunks of 256 and 512 rows and one more or less, tiles
// with a lone row or column.
TEST_P(WeightGradient, EqualsPlainLoopsInDouble) {
  const std::vector<Shape> shapes{{1, 1, 1},      {2, 5, 3},      {3, 8, 32},    {255, 6, 16},
                                  {256, 13, 33},  {257, 7, 31},   {511, 9, 65},  {513, 130, 17},
                                  {1025, 20, 24}, {70, 257, 300}, {70, 65, 257}, {600, 513, 257}};
  for (const auto& [rows, out, in] : shapes) {
    SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(out) + " x " + std::to_string(in));
    const Floats dy = normal_numbers(rows * out, 1);
    const Floats x = normal_numbers(rows * in, 2);
    Gradients d{.weight = Floats(static_cast<std::size_t>(out * in), -7.0F),
                .bias = Floats(static_cast<std::size_t>(out), -7.0F)};
    weight_gradient({dy.data(), x.data(), rows}, {out, in}, {.type = type()}, {d.weight.data(), d.bias.data()});
    const Floats left = as_multiplied(dy);
    const Floats right = as_multiplied(x);
    for (std::int64_t o = 0; o < out; ++o) {
      double bias = 0.0;
      for (std::int64_t r = 0; r < rows; ++r) bias += dy[static_cast<std::size_t>(r * out + o)];
      ASSERT_NEAR(d.bias[static_cast<std::size_t>(o)], bias, 1e-5 * static_cast<double>(rows)) << o;
      for (std::int64_t i = 0; i < in; ++i) {
        double sum = 0.0;
        double absolute = 0.0;
        for (std::int64_t r = 0; r < rows; ++r) {
          const double product = static_cast<double>(left[static_cast<std::size_t>(r * out + o)]) *
                                 static_cast<double>(right[static_cast<std::size_t>(r * in + i)]);
          sum += product;
          absolute += std::abs(product);
        }
        // The error of sums in float32, in whatever order.
        const double tolerance = static_cast<double>(rows + 2) * 0x1.0p-24 * absolute;
        ASSERT_NEAR(d.weight[static_cast<std::size_t>(o * in + i)], sum, tolerance) << o << ", " << i;
      }
    }
  }
}

// More rows than are packed at once, and more tiles than threads: who computes what must not show.
TEST_P(WeightGradient, ManyRoundsHaveTheSameBitsOnAnyNumberOfThreads) {
  constexpr Shape kShape{.rows = 4500, .out = 300, .in = 530};
  const Floats dy = normal_numbers(kShape.rows * kShape.out, 3);
  const Floats x = normal_numbers(kShape.rows * kShape.in, 4);
  std::vector<Gradients> found;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    Gradients d{.weight = Floats(static_cast<std::size_t>(kShape.out * kShape.in)),
                .bias = Floats(static_cast<std::size_t>(kShape.out))};
    weight_gradient({dy.data(), x.data(), kShape.rows}, {kShape.out, kShape.in}, {.type = type()},
                    {d.weight.data(), d.bias.data()});
    found.push_back(std::move(d));
  }
  for (const Gradients& d : found) {
    EXPECT_EQ(d.weight, found[0].weight);
    EXPECT_EQ(d.bias, found[0].bias);
  }
  const Floats left = as_multiplied(dy);
  const Floats right = as_multiplied(x);
  for (const auto& [o, i] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {299, 529}, {128, 255}, {7, 511}}) {
    double sum = 0.0;
    for (std::int64_t r = 0; r < kShape.rows; ++r) {
      sum += static_cast<double>(left[static_cast<std::size_t>(r * kShape.out + o)]) *
             static_cast<double>(right[static_cast<std::size_t>(r * kShape.in + i)]);
    }
    EXPECT_NEAR(found[0].weight[static_cast<std::size_t>(o * kShape.in + i)], sum, 1e-3) << o << ", " << i;
  }
}

// A caller may cut the rows itself, where the sums of chunks end.
TEST_P(WeightGradient, PiecesOfFiveHundredAndTwelveRowsHaveTheBitsOfTheWhole) {
  constexpr Shape kShape{.rows = 1100, .out = 20, .in = 33};
  const Floats dy = normal_numbers(kShape.rows * kShape.out, 9);
  const Floats x = normal_numbers(kShape.rows * kShape.in, 10);
  Gradients whole{.weight = Floats(660), .bias = Floats(20)};
  Gradients pieces{.weight = Floats(660, -7.0F), .bias = Floats(20, -7.0F)};
  weight_gradient({dy.data(), x.data(), kShape.rows}, {kShape.out, kShape.in}, {.type = type()},
                  {whole.weight.data(), whole.bias.data()});
  for (std::int64_t first = 0; first < kShape.rows; first += 512) {
    weight_gradient({dy.data() + first * kShape.out, x.data() + first * kShape.in,
                     std::min<std::int64_t>(512, kShape.rows - first)},
                    {kShape.out, kShape.in}, {.type = type(), .accumulate = first > 0},
                    {pieces.weight.data(), pieces.bias.data()});
  }
  EXPECT_EQ(pieces.weight, whole.weight);
  EXPECT_EQ(pieces.bias, whole.bias);
}

TEST_P(WeightGradient, EitherGradientMayBeLeftOut) {
  const Floats dy = normal_numbers(40 * 9, 5);
  const Floats x = normal_numbers(40 * 5, 6);
  Gradients both{.weight = Floats(45), .bias = Floats(9)};
  Gradients one{.weight = Floats(45), .bias = Floats(9)};
  weight_gradient({dy.data(), x.data(), 40}, {9, 5}, {.type = type()}, {both.weight.data(), both.bias.data()});
  weight_gradient({dy.data(), x.data(), 40}, {9, 5}, {.type = type()}, {.weight = one.weight.data()});
  weight_gradient({dy.data(), nullptr, 40}, {9, 5}, {.type = type()}, {.bias = one.bias.data()});
  EXPECT_EQ(one.weight, both.weight);
  EXPECT_EQ(one.bias, both.bias);
}

// What is not a number must reach the gradient, or nobody would notice that a training diverged.
TEST_P(WeightGradient, NotANumberStaysInItsRowAndColumn) {
  Floats dy(3 * 2, 1.0F);
  Floats x(3 * 20, 1.0F);
  dy[1] = std::numeric_limits<float>::quiet_NaN();
  x[25] = std::numeric_limits<float>::infinity();
  Floats dw(40);
  weight_gradient({dy.data(), x.data(), 3}, {2, 20}, {.type = type()}, {.weight = dw.data()});
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(dw[i], i == 5 ? std::numeric_limits<float>::infinity() : 3.0F) << i;
    EXPECT_TRUE(std::isnan(dw[20 + i])) << i;
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Isa, DenseType>>& info) {
  return std::string(to_string(std::get<0>(info.param))) +
         (std::get<1>(info.param) == DenseType::bf16 ? "_in_bf16" : "_in_fp32");
}
INSTANTIATE_TEST_SUITE_P(EveryLevel, WeightGradient,
                         ::testing::Combine(::testing::ValuesIn(supported_isas()),
                                            ::testing::Values(DenseType::fp32, DenseType::bf16)),
                         name_of);

// Inputs in bfloat16 are for products of that type.
TEST(WeightGradientHalves, InputsThatWereRoundedBeforeHaveTheSameProductsAtEveryLevel) {
  constexpr auto kType = DenseType::bf16;
  for (const Isa isa : supported_isas()) {
    set_active_isa(isa);
    for (const auto& [rows, out, in] : std::vector<Shape>{{1, 3, 5}, {3, 8, 32}, {257, 7, 31}, {1025, 20, 65}}) {
      const Floats dy = normal_numbers(rows * out, 7);
      const Floats x = normal_numbers(rows * in, 8);
      std::vector<std::uint16_t> halves(x.size());
      to_bfloat16(x.data(), rows * in, halves.data());
      Floats of_floats(static_cast<std::size_t>(out * in));
      Floats of_halves(of_floats.size());
      weight_gradient({dy.data(), x.data(), rows}, {out, in}, {.type = kType}, {.weight = of_floats.data()});
      weight_gradient({dy.data(), DenseRows(halves.data()), rows}, {out, in}, {.type = kType},
                      {.weight = of_halves.data()});
      EXPECT_EQ(of_halves, of_floats) << rows << " rows, " << to_string(isa);
    }
  }
  set_active_isa(supported_isas().back());
}

TEST(GradientLoops, TilesOfAmxAndProcessorsWithoutAvx2AreLeftToOneDnn) {
  for (const Isa isa : supported_isas()) {
    set_active_isa(isa);
    EXPECT_EQ(gradient_loops(DenseType::fp32).has_value(), isa != Isa::generic) << to_string(isa);
    EXPECT_EQ(gradient_loops(DenseType::bf16).has_value(), isa != Isa::generic && isa != Isa::amx) << to_string(isa);
  }
  set_active_isa(supported_isas().back());
}

}  // namespace
}  // namespace routing::kernels::weight_gradient_test
