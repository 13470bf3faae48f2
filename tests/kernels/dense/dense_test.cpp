// Runs several times in ctest, each time with another DNNL_MAX_CPU_ISA.
#include "routing/kernels/dense/dense.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/core/random.h"
#include "routing/kernels/pointwise/bfloat16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

namespace routing::kernels::dense_test {
namespace {

using Floats = std::vector<float>;

Floats normal_numbers(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  RandomStream stream(seed, "dense test");
  Floats values(static_cast<std::size_t>(rows * columns));
  for (float& value : values) value = static_cast<float>(stream.normal());
  return values;
}

// The factors as the type multiplies them.
Floats as_multiplied(Floats values, DenseType type) {
  if (type == DenseType::bf16) {
    round_to_bfloat16(values.data(), static_cast<std::int64_t>(values.size()), values.data());
  }
  return values;
}

double at(const Floats& matrix, std::int64_t index) {
  return matrix[static_cast<std::size_t>(index)];
}

// Products of the rounded factors are exact in double, so what is left is the error of summing in float32: below
// (terms + 2) * 2^-24 * (sum of the absolute products), whatever the order.
double sum_tolerance(std::int64_t terms, double absolute_sum) {
  return static_cast<double>(terms + 2) * 0x1.0p-24 * absolute_sum;
}

Floats forward(const float* x, std::int64_t rows, const PackedMatrix& matrix, const DenseOptions& options = {}) {
  Floats y(static_cast<std::size_t>(rows * matrix.columns()), -77.0F);
  dense_product(x, rows, matrix, options, y.data());
  return y;
}

class Dense : public ::testing::TestWithParam<DenseType> {
 protected:
  void TearDown() override { set_num_threads(available_cores()); }
};

struct Shape {
  std::int64_t rows, in, out;
};
const std::vector<Shape> kShapes{{1, 1, 1},      {2, 3, 5},      {63, 17, 1},   {64, 1, 5},
                                 {65, 3, 17},    {5, 64, 64},    {70, 256, 31}, {130, 300, 257},
                                 {600, 33, 530}, {1025, 20, 24}, {1, 257, 513}, {66, 257, 65}};

TEST(DenseIsa, LimitOfTheEnvironmentIsInForce) {
  const char* limit = std::getenv("DNNL_MAX_CPU_ISA");
  if (limit == nullptr) GTEST_SKIP() << "DNNL_MAX_CPU_ISA is not set";
  const auto most = std::string(limit) == "AVX2" ? dnnl::cpu_isa::avx2 : dnnl::cpu_isa::avx512_core;
  ASSERT_TRUE(std::string(limit) == "AVX2" || std::string(limit) == "AVX512_CORE") << limit;
  EXPECT_LE(static_cast<int>(dnnl::get_effective_cpu_isa()), static_cast<int>(most));
}

TEST_P(Dense, ForwardEqualsPlainLoopsInDouble) {
  for (const auto& [rows, in, out] : kShapes) {
    const Floats x = normal_numbers(rows, in, 1);
    const Floats w = normal_numbers(out, in, 2);
    const Floats bias = normal_numbers(1, out, 3);
    const Floats xr = as_multiplied(x, GetParam());
    const Floats wr = as_multiplied(w, GetParam());
    const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {out, in}, GetParam());
    EXPECT_EQ(matrix.depth(), in);
    EXPECT_EQ(matrix.columns(), out);
    EXPECT_GE(matrix.bytes(), static_cast<std::size_t>(in * out * (GetParam() == DenseType::bf16 ? 2 : 4)));
    const Floats plain = forward(x.data(), rows, matrix);
    const Floats full = forward(x.data(), rows, matrix, {.bias = bias.data(), .relu = true});
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < out; ++o) {
        double sum = 0.0;
        double absolute = std::abs(at(bias, o));
        for (std::int64_t i = 0; i < in; ++i) {
          sum += at(xr, r * in + i) * at(wr, o * in + i);
          absolute += std::abs(at(xr, r * in + i) * at(wr, o * in + i));
        }
        const double tolerance = sum_tolerance(in, absolute);
        ASSERT_NEAR(at(plain, r * out + o), sum, tolerance)
            << rows << "x" << in << "x" << out << " at " << r << "," << o;
        ASSERT_NEAR(at(full, r * out + o), std::max(0.0, sum + at(bias, o)), tolerance);
      }
    }
  }
}

TEST_P(Dense, DataGradientEqualsPlainLoopsInDouble) {
  for (const auto& [rows, in, out] : kShapes) {
    const Floats dy = normal_numbers(rows, out, 4);
    const Floats w = normal_numbers(out, in, 5);
    const Floats before = normal_numbers(rows, in, 6);
    const Floats dyr = as_multiplied(dy, GetParam());
    const Floats wr = as_multiplied(w, GetParam());
    const PackedMatrix matrix = PackedMatrix::for_data_gradient(w.data(), {out, in}, GetParam());
    const Floats dx = forward(dy.data(), rows, matrix);
    Floats added = before;
    dense_product(dy.data(), rows, matrix, {.accumulate = true}, added.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < in; ++i) {
        double sum = 0.0;
        double absolute = std::abs(at(before, r * in + i));
        for (std::int64_t o = 0; o < out; ++o) {
          sum += at(dyr, r * out + o) * at(wr, o * in + i);
          absolute += std::abs(at(dyr, r * out + o) * at(wr, o * in + i));
        }
        const double tolerance = sum_tolerance(out, absolute);
        ASSERT_NEAR(at(dx, r * in + i), sum, tolerance) << rows << "x" << in << "x" << out;
        ASSERT_NEAR(at(added, r * in + i), sum + at(before, r * in + i), tolerance) << rows << "x" << in << "x" << out;
      }
    }
  }
}

TEST_P(Dense, WeightGradientEqualsPlainLoopsInDouble) {
  for (const auto& [rows, in, out] : kShapes) {
    const Floats dy = normal_numbers(rows, out, 7);
    const Floats x = normal_numbers(rows, in, 8);
    const Floats dyr = as_multiplied(dy, GetParam());
    const Floats xr = as_multiplied(x, GetParam());
    Floats dw(static_cast<std::size_t>(out * in), -77.0F);
    Floats db(static_cast<std::size_t>(out), -77.0F);
    weight_gradient({dy.data(), x.data(), rows}, {out, in}, {.type = GetParam()}, {dw.data(), db.data()});
    Floats twice = dw;
    Floats bias_twice = db;
    weight_gradient({dy.data(), x.data(), rows}, {out, in}, {.type = GetParam(), .accumulate = true},
                    {twice.data(), bias_twice.data()});
    for (std::int64_t o = 0; o < out; ++o) {
      double bias = 0.0;
      double absolute_bias = 0.0;
      for (std::int64_t r = 0; r < rows; ++r) {
        bias += at(dy, r * out + o);
        absolute_bias += std::abs(at(dy, r * out + o));
      }
      ASSERT_NEAR(at(db, o), bias, sum_tolerance(rows, absolute_bias)) << rows << "x" << in << "x" << out;
      ASSERT_NEAR(at(bias_twice, o), 2.0 * bias, 3.0 * sum_tolerance(rows, absolute_bias));
      for (std::int64_t i = 0; i < in; ++i) {
        double sum = 0.0;
        double absolute = 0.0;
        for (std::int64_t r = 0; r < rows; ++r) {
          sum += at(dyr, r * out + o) * at(xr, r * in + i);
          absolute += std::abs(at(dyr, r * out + o) * at(xr, r * in + i));
        }
        const double tolerance = sum_tolerance(rows, absolute);
        ASSERT_NEAR(at(dw, o * in + i), sum, tolerance) << rows << "x" << in << "x" << out << " at " << o << "," << i;
        ASSERT_NEAR(at(twice, o * in + i), 2.0 * sum, 3.0 * tolerance);
      }
    }
  }
}

// A row alone, in any batch, at any place of a block, on any number of threads.
TEST_P(Dense, BitsOfARowDependOnTheRowAlone) {
  constexpr std::int64_t kRows = 200;
  for (const auto& [in, out] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {3, 5}, {17, 1}, {1, 17}, {64, 300}, {64, 257}, {256, 256}, {300, 70}, {1030, 64}}) {
    const Floats x = normal_numbers(kRows, in, 9);
    const Floats w = normal_numbers(out, in, 10);
    const Floats bias = normal_numbers(1, out, 11);
    const DenseOptions with_bias{.bias = bias.data(), .relu = true};
    const PackedMatrix forwards = PackedMatrix::for_forward(w.data(), {out, in}, GetParam());
    const PackedMatrix backwards = PackedMatrix::for_data_gradient(w.data(), {in, out}, GetParam());
    set_num_threads(1);
    for (const auto& [matrix, options] : {std::pair{forwards, with_bias}, std::pair{backwards, DenseOptions{}}}) {
      const Floats whole = forward(x.data(), kRows, matrix, options);
      for (const int threads : {1, 2, 5}) {
        set_num_threads(threads);
        for (const std::int64_t rows : {1, 2, 63, 64, 65, 200}) {
          for (std::int64_t first = 0; first + rows <= kRows; first += std::max<std::int64_t>(rows, 7)) {
            const Floats part = forward(x.data() + first * in, rows, matrix, options);
            ASSERT_EQ(std::memcmp(part.data(), whole.data() + first * out, part.size() * sizeof(float)), 0)
                << rows << " rows from " << first << ", " << in << " to " << out << ", " << threads << " threads";
          }
        }
      }
    }
  }
}

TEST_P(Dense, BitsDoNotDependOnTheNumberOfThreads) {
  constexpr std::int64_t kRows = 2300;
  constexpr std::int64_t kIn = 300;
  constexpr std::int64_t kOut = 270;
  const Floats x = normal_numbers(kRows, kIn, 12);
  const Floats dy = normal_numbers(kRows, kOut, 13);
  const Floats w = normal_numbers(kOut, kIn, 14);
  const auto everything = [&] {
    Floats results = forward(x.data(), kRows, PackedMatrix::for_forward(w.data(), {kOut, kIn}, GetParam()));
    const Floats dx = forward(dy.data(), kRows, PackedMatrix::for_data_gradient(w.data(), {kOut, kIn}, GetParam()));
    Floats gradients(static_cast<std::size_t>(kOut * kIn + kOut));
    weight_gradient({dy.data(), x.data(), kRows}, {kOut, kIn}, {.type = GetParam()},
                    {gradients.data(), gradients.data() + kOut * kIn});
    results.insert(results.end(), dx.begin(), dx.end());
    results.insert(results.end(), gradients.begin(), gradients.end());
    return results;
  };
  set_num_threads(1);
  const Floats expected = everything();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const Floats results = everything();
    EXPECT_EQ(std::memcmp(results.data(), expected.data(), results.size() * sizeof(float)), 0) << threads;
  }
}

// Deep and narrow, with many OpenMP threads on offer: where oneDNN left to itself splits sums between threads.
TEST_P(Dense, OpenMpThreadsOfTheCallerAreNeitherUsedNorChanged) {
  constexpr std::int64_t kDepth = 4096;
  const Floats x = normal_numbers(64, kDepth, 15);
  const Floats w = normal_numbers(16, kDepth, 16);
  const int before = omp_get_max_threads();
  omp_set_num_threads(16);
  set_num_threads(1);
  const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {16, kDepth}, GetParam());
  const Floats alone = forward(x.data(), 64, matrix);
  EXPECT_EQ(omp_get_max_threads(), 16);
  Floats nested;
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 1) nested = forward(x.data(), 64, matrix);
  omp_set_num_threads(before);
  ASSERT_EQ(nested.size(), alone.size());
  EXPECT_EQ(std::memcmp(nested.data(), alone.data(), alone.size() * sizeof(float)), 0);
}

TEST_P(Dense, NoRowsGiveNoOutputsAndZeroGradients) {
  const Floats w = normal_numbers(5, 3, 1);
  EXPECT_TRUE(forward(nullptr, 0, PackedMatrix::for_forward(w.data(), {5, 3}, GetParam())).empty());
  Floats dw(15, 9.0F);
  Floats db(5, 9.0F);
  weight_gradient({nullptr, nullptr, 0}, {5, 3}, {.type = GetParam(), .accumulate = true}, {dw.data(), db.data()});
  EXPECT_EQ(dw, Floats(15, 9.0F));
  EXPECT_EQ(db, Floats(5, 9.0F));
  weight_gradient({nullptr, nullptr, 0}, {5, 3}, {.type = GetParam()}, {dw.data(), db.data()});
  EXPECT_EQ(dw, Floats(15, 0.0F));
  EXPECT_EQ(db, Floats(5, 0.0F));
}

TEST_P(Dense, PaddingNeverSeesWhatScratchHeldBefore) {
  const Floats w = normal_numbers(5, 3, 1);
  const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {5, 3}, GetParam());
  set_num_threads(1);
  const Floats poison(65 * 3, std::nanf(""));
  forward(poison.data(), 65, matrix);
  const Floats x = normal_numbers(2, 3, 2);
  for (const float value : forward(x.data(), 2, matrix)) EXPECT_TRUE(std::isfinite(value));
  Floats sums(2 * 5, 1.0F);
  dense_product(x.data(), 2, matrix, {.accumulate = true}, sums.data());
  for (const float value : sums) EXPECT_TRUE(std::isfinite(value));
}

INSTANTIATE_TEST_SUITE_P(BothTypes, Dense, ::testing::Values(DenseType::fp32, DenseType::bf16),
                         [](const auto& instance) { return instance.param == DenseType::fp32 ? "fp32" : "bf16"; });

// 70 rows end in the middle of a block, 300 columns in the middle of a panel.
TEST_P(Dense, OutputsPassThroughAReluWhereItGaveMoreThanZero) {
  constexpr std::int64_t kRows = 70, kOut = 33, kIn = 300;
  const Floats dy = normal_numbers(kRows, kOut, 1);
  Floats relu = normal_numbers(kRows, kIn, 2);
  for (float& value : relu) value = std::max(value, 0.0F);
  relu[0] = -0.0F;
  relu[1] = std::nanf("");
  std::vector<std::uint16_t> relu_halves(relu.size());
  to_bfloat16(relu.data(), static_cast<std::int64_t>(relu.size()), relu_halves.data());
  const Floats w = normal_numbers(kOut, kIn, 4);
  const PackedMatrix matrix = PackedMatrix::for_data_gradient(w.data(), {kOut, kIn}, GetParam());
  Floats plain(kRows * kIn), passed(kRows * kIn, -7.0F), passed_halves(kRows * kIn, -7.0F);
  dense_product(dy.data(), kRows, matrix, {}, plain.data());
  dense_product(dy.data(), kRows, matrix, {.relu_outputs = relu.data(), .passed_factor = 1.25F}, passed.data());
  dense_product(dy.data(), kRows, matrix, {.relu_outputs = DenseRows(relu_halves.data()), .passed_factor = 1.25F},
                passed_halves.data());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    ASSERT_EQ(passed[i], relu[i] > 0.0F ? 1.25F * plain[i] : 0.0F) << i;
  }
  EXPECT_EQ(passed_halves, passed);
}

// Few rows, whole blocks and a rest.
TEST(DenseHalves, RowsThatWereRoundedBeforeHaveTheSameProducts) {
  constexpr std::int64_t kOut = 33, kIn = 70;
  const Floats w = normal_numbers(kOut, kIn, 4);
  const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {kOut, kIn}, DenseType::bf16);
  for (const std::int64_t rows : {1, 5, 64, 130}) {
    const Floats x = normal_numbers(rows, kIn, 3);
    const Floats dy = normal_numbers(rows, kOut, 5);
    std::vector<std::uint16_t> halves(x.size());
    to_bfloat16(x.data(), static_cast<std::int64_t>(x.size()), halves.data());
    Floats of_floats(static_cast<std::size_t>(rows * kOut)), of_halves(of_floats.size());
    dense_product(x.data(), rows, matrix, {}, of_floats.data());
    dense_product(DenseRows(halves.data()), rows, matrix, {}, of_halves.data());
    EXPECT_EQ(of_halves, of_floats) << rows;
  }
}

TEST(DenseErrors, HalvesAreForProductsInBfloat16) {
  const Floats w(6, 1.0F);
  const std::vector<std::uint16_t> x(3);
  Floats y(2);
  const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {2, 3}, DenseType::fp32);
  EXPECT_THROW(dense_product(DenseRows(x.data()), 1, matrix, {}, y.data()), InputError);
  EXPECT_THROW(weight_gradient({w.data(), DenseRows(x.data()), 1}, {2, 3}, {}, {.bias = y.data()}), InputError);
}

TEST(DenseErrors, EmptyWeightIsRefusedWithBothSizes) {
  try {
    PackedMatrix::for_forward(nullptr, {0, 3}, DenseType::fp32);
    FAIL() << "an empty weight was packed";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("3 by 0"), std::string::npos) << error.what();
  }
}

TEST(DenseErrors, AccumulateWithBiasIsRefused) {
  const Floats w(1, 1.0F);
  Floats y(1, 0.0F);
  const PackedMatrix matrix = PackedMatrix::for_forward(w.data(), {1, 1}, DenseType::fp32);
  EXPECT_THROW(dense_product(w.data(), 1, matrix, {.bias = w.data(), .accumulate = true}, y.data()), InputError);
  EXPECT_THROW(dense_product(w.data(), 1, matrix, {.accumulate = true, .relu_outputs = w.data()}, y.data()),
               InputError);
}

}  // namespace
}  // namespace routing::kernels::dense_test
