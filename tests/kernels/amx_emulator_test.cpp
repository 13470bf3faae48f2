// Real tile instructions against plain loops: under the emulator where the processor has no tiles, on the processor
// where it has. Whole numbers have one exact result, so these cases compare bits on both.
#include "support/amx/amx_emulator.h"

#include "routing/kernels/dispatch/cpu_features.h"
#include "support/amx/amx_tile_kernels.h"
#include "support/amx/tile_oracle.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <ostream>
#include <thread>
#include <vector>

namespace routing::support {

// How GoogleTest shows a level.
static void PrintTo(const TileKernels& kernels, std::ostream* out) {
  *out << kernels.name;
}

namespace amx_emulator_test {
namespace {

constexpr TileConfig kFull{.bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

// Matrices with rows further apart than they are long; the gaps of C must stay as they are.
class Problem {
 public:
  Problem(TileSizes sizes, bool exact, std::uint32_t seed) : sizes_(sizes) {
    const auto numbers = exact ? small_integers : rough_numbers;
    a = numbers(static_cast<std::size_t>(sizes.rows * a_halves()), seed);
    b = numbers(static_cast<std::size_t>(sizes.depth / 2 * b_halves()), seed + 1);
    const auto sums = numbers(static_cast<std::size_t>(sizes.rows * c_floats()), seed + 2);
    for (const std::uint16_t half : sums) c.push_back(widened(half));
  }

  TileProduct arguments(const TileConfig& config) {
    return {.config = &config,
            .a = a.data(),
            .b = b.data(),
            .c = c.data(),
            .depth = sizes_.depth,
            .a_distance = 2L * a_halves(),
            .b_distance = 2L * b_halves(),
            .c_distance = 4L * c_floats()};
  }

  // start_at_zero: C = A * B instead of C += A * B. One instruction takes `step` of the depth.
  std::vector<float> expected(bool start_at_zero, int step) const {
    std::vector<float> sums = c;
    for (int m = 0; m < sizes_.rows; ++m) {
      for (int n = 0; n < sizes_.columns; ++n) {
        float& sum = sums[static_cast<std::size_t>(m * c_floats() + n)];
        if (start_at_zero) sum = 0;
        for (int first = 0; first < sizes_.depth; first += step) {
          std::vector<float> of_a, of_b;
          for (int k = first; k < first + step; ++k) {
            of_a.push_back(widened(a[static_cast<std::size_t>(m * a_halves() + k)]));
            of_b.push_back(widened(b[static_cast<std::size_t>(k / 2 * b_halves() + 2 * n + k % 2)]));
          }
          sum = tile_dot(of_a, of_b, sum);
        }
      }
    }
    return sums;
  }

  std::vector<std::uint16_t> a, b;
  std::vector<float> c;

 private:
  int a_halves() const { return sizes_.depth + 6; }
  int b_halves() const { return 2 * sizes_.columns + 10; }
  int c_floats() const { return sizes_.columns + 3; }

  TileSizes sizes_;
};

// Tiles 0 += 1 * 2.
TileConfig config_of(TileSizes sizes) {
  const auto rows = static_cast<std::uint8_t>(sizes.rows);
  const auto pairs = static_cast<std::uint8_t>(sizes.depth / 2);
  const auto width = static_cast<std::uint16_t>(4 * sizes.columns);
  return {.bytes = {width, static_cast<std::uint16_t>(4 * pairs), width}, .rows = {rows, rows, pairs}};
}

bool runs_here(const TileKernels& kernels) {
  const CpuFeatures& cpu = cpu_features();
  return !kernels.needs_avx512 || (cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl && cpu.avx512_bf16);
}

class AmxMachineCode : public ::testing::TestWithParam<TileKernels> {
 protected:
  void SetUp() override {
    if (!can_run_amx()) GTEST_SKIP() << "Linux refuses the tiles of this processor";
    if (!runs_here(GetParam())) GTEST_SKIP() << "this level needs AVX-512 and its bfloat16";
    emulator.emplace();
  }
  std::optional<AmxEmulator> emulator;
};

TEST_P(AmxMachineCode, ProductsOfEveryShapeEqualPlainLoops) {
  for (int rows = 1; rows <= 16; ++rows) {
    for (const int pairs : {1, 3, 8, 16}) {
      for (const int columns : {1, 5, 16}) {
        const TileSizes sizes{.rows = rows, .columns = columns, .depth = 2 * pairs};
        const TileConfig config = config_of(sizes);
        Problem problem(sizes, true, static_cast<std::uint32_t>(rows));
        const std::vector<float> expected = problem.expected(false, sizes.depth);
        GetParam().product(problem.arguments(config));
        ASSERT_EQ(problem.c, expected) << rows << " x " << columns << " x " << 2 * pairs;
      }
    }
  }
}

TEST_P(AmxMachineCode, FourTilesOfSumsEqualPlainLoopsForEveryLastRow) {
  for (int rows = 17; rows <= 32; ++rows) {
    const auto rest = static_cast<std::uint8_t>(rows - 16);
    TileConfig config = kFull;
    config.rows = {16, 16, rest, rest, 16, rest, 16, 16};
    Problem problem({.rows = rows, .columns = 32, .depth = 96}, true, static_cast<std::uint32_t>(rows));
    const std::vector<float> expected = problem.expected(true, 32);
    GetParam().product_2x2(problem.arguments(config));
    ASSERT_EQ(problem.c, expected) << rows;
  }
}

// The manual fixes the order of the sums. Nobody has compared with a processor yet, so there nearly equal must do.
TEST_P(AmxMachineCode, RoundedSumsEqualTheManualsDefinition) {
  Problem problem({.rows = 32, .columns = 32, .depth = 160}, false, 7);
  const std::vector<float> expected = problem.expected(true, 32);
  GetParam().product_2x2(problem.arguments(kFull));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (emulator->installed()) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(problem.c[i]), std::bit_cast<std::uint32_t>(expected[i])) << i;
    } else {
      ASSERT_NEAR(problem.c[i], expected[i], 1e-3) << i;
    }
  }
}

TEST_P(AmxMachineCode, EightTilesKeepEightMatrices) {
  std::vector<std::uint16_t> in = rough_numbers(8 * 512, 3);
  std::vector<float> out(8 * 256, -1.0F);
  GetParam().copy_all({.config = &kFull, .a = in.data(), .c = out.data()});
  std::fill(in.begin() + 5 * 512, in.begin() + 6 * 512, std::uint16_t{0});
  EXPECT_EQ(std::memcmp(in.data(), out.data(), 8 * 1024), 0);
}

TEST_P(AmxMachineCode, EveryFormOfAddressReachesTheSameRows) {
  const std::vector<std::uint16_t> in = rough_numbers(8192, 4);
  std::vector<float> out(kNumAddressForms * 256, -1.0F);
  GetParam().address_forms({.config = &kFull, .a = in.data(), .c = out.data()});
  for (int form = 0; form < kNumAddressForms; ++form) {
    for (int row = 0; row < 16; ++row) {
      const bool distance_is_zero = form == kNumAddressForms - 1;
      const std::uint16_t* memory = in.data() + 2048 + (distance_is_zero ? 0 : row * 64);
      ASSERT_EQ(std::memcmp(out.data() + form * 256 + row * 16, memory, 64), 0) << "form " << form << ", row " << row;
    }
  }
}

TEST_P(AmxMachineCode, ConfigurationsAreFoundWhereverTheyAre) {
  const std::vector<std::uint16_t> in = rough_numbers(64, 5);
  std::vector<float> out(32, -1.0F);
  const TileConfig two_words{.bytes = {8, 8}, .rows = {1, 1}};
  GetParam().config_forms({.config = &two_words, .a = in.data(), .c = out.data()});
  EXPECT_EQ(std::memcmp(out.data(), in.data(), 4), 0);
  EXPECT_EQ(out[1], -1.0F);
  EXPECT_EQ(std::memcmp(out.data() + 16, in.data(), 8), 0);
  EXPECT_EQ(out[18], -1.0F);
  TileConfig in_force{.palette = 7};
  GetParam().store_config(&two_words, &in_force);
  EXPECT_EQ(std::memcmp(&in_force, &two_words, sizeof(TileConfig)), 0);
}

TEST_P(AmxMachineCode, VectorRegistersOutliveTileInstructions) {
  Problem problem({}, true, 6);
  const TileConfig config = config_of({});
  float sum = 0;
  for (std::size_t i = 0; i < 32; ++i) sum += problem.c[i];
  EXPECT_EQ(GetParam().sum_across_tiles(problem.arguments(config)), sum);
}

TEST_P(AmxMachineCode, ThreadsHaveTilesOfTheirOwn) {
  constexpr int kThreads = 4;
  std::vector<int> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const TileSizes sizes{.rows = 4 * thread + 1, .columns = 16 - thread, .depth = 8 * thread + 2};
      const TileConfig config = config_of(sizes);
      for (std::uint32_t seed = 0; seed < 50; ++seed) {
        Problem problem(sizes, true, seed);
        const std::vector<float> expected = problem.expected(false, sizes.depth);
        GetParam().product(problem.arguments(config));
        wrong[static_cast<std::size_t>(thread)] += problem.c != expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
  EXPECT_EQ(emulator->count(AmxOperation::multiply_bf16), emulator->installed() ? 50 * kThreads : 0);
}

TEST_P(AmxMachineCode, EveryInstructionIsCountedOnce) {
  if (!emulator->installed()) GTEST_SKIP() << "a processor does not count";
  Problem problem({.rows = 32, .columns = 32, .depth = 64}, true, 8);
  GetParam().product_2x2(problem.arguments(kFull));
  EXPECT_EQ(emulator->count(AmxOperation::load_config), 1);
  EXPECT_EQ(emulator->count(AmxOperation::zero), 4);
  EXPECT_EQ(emulator->count(AmxOperation::load), 2 * 4);
  EXPECT_EQ(emulator->count(AmxOperation::multiply_bf16), 2 * 4);
  EXPECT_EQ(emulator->count(AmxOperation::store), 4);
  EXPECT_EQ(emulator->count(AmxOperation::release), 1);
  EXPECT_EQ(emulator->count(AmxOperation::store_config), 0);
  emulator.reset();
  emulator.emplace();
  EXPECT_EQ(emulator->count(AmxOperation::load), 0);
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, AmxMachineCode,
                         ::testing::Values(tile_kernels_o0(), tile_kernels_o2(), tile_kernels_o3()),
                         [](const auto& kernels) { return std::string(kernels.param.name); });

}  // namespace
}  // namespace amx_emulator_test
}  // namespace routing::support
