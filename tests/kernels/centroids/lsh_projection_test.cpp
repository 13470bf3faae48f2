#include "routing/kernels/centroids/lsh_projection.h"

#include "routing/core/random.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace routing::kernels::lsh_projection_test {
namespace {

std::size_t elements(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(rows * columns);
}

// Small whole numbers, -4 to 4: every product and sum is exact, so no tolerance can hide a wrong tail.
std::vector<double> whole_numbers(std::size_t count, RandomStream& stream) {
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(static_cast<int>(stream.below(9)) - 4);
  return values;
}

std::vector<double> normal_numbers(std::size_t count, RandomStream& stream) {
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(stream.normal());
  return values;
}

// One score after the other, by rows of the columns matrix instead of the kernel's loop order.
std::vector<double> plain_loops(const std::vector<double>& tokens, const std::vector<double>& columns,
                                const ProjectionSizes& sizes) {
  std::vector<double> scores;
  for (std::int64_t t = 0; t < sizes.num_tokens; ++t) {
    for (std::int64_t c = 0; c < sizes.num_columns; ++c) {
      double total = 0;
      for (std::int64_t d = 0; d < sizes.dim; ++d) {
        total += tokens[static_cast<std::size_t>(t * sizes.dim + d)] *
                 columns[static_cast<std::size_t>(d * sizes.num_columns + c)];
      }
      scores.push_back(total);
    }
  }
  return scores;
}

// The kernel, with numbers around its output that it must not touch, and old ones in it that it must not add to.
std::vector<double> projected_by_kernel(const double* tokens, const std::vector<double>& columns,
                                        const ProjectionSizes& sizes) {
  constexpr std::size_t kFrame = 4;
  const double untouched = 12345;
  const std::size_t count = elements(sizes.num_tokens, sizes.num_columns);
  std::vector<double> framed(count + 2 * kFrame, untouched);
  lsh_projection(tokens, columns.data(), sizes, framed.data() + kFrame);
  for (std::size_t i = 0; i < kFrame; ++i) {
    EXPECT_EQ(framed[i], untouched) << "before the numbers";
    EXPECT_EQ(framed[framed.size() - 1 - i], untouched) << "behind the numbers";
  }
  return {framed.begin() + kFrame, framed.end() - kFrame};
}

TEST(LshProjection, HandWorkedCase) {
  // Two tokens (1, 2) and (-1, 3) against the columns (5, 7), (0, 1), (2, -2).
  const std::vector<double> tokens{1, 2, -1, 3};
  const std::vector<double> columns{5, 0, 2, 7, 1, -2};
  EXPECT_EQ(projected_by_kernel(tokens.data(), columns, {.num_tokens = 2, .dim = 2, .num_columns = 3}),
            (std::vector<double>{19, 2, -2, 16, 3, -8}));
}

TEST(LshProjection, EqualsPlainLoopsAtEveryTail) {
  RandomStream stream(1, "lsh projection");
  for (std::int64_t dim = 0; dim <= 9; ++dim) {
    for (std::int64_t num_columns = 1; num_columns <= 17; ++num_columns) {
      for (std::int64_t num_tokens = 0; num_tokens <= 5; ++num_tokens) {
        const ProjectionSizes sizes{.num_tokens = num_tokens, .dim = dim, .num_columns = num_columns};
        const auto tokens = whole_numbers(elements(num_tokens, dim), stream);
        const auto columns = whole_numbers(elements(dim, num_columns), stream);
        ASSERT_EQ(projected_by_kernel(tokens.data(), columns, sizes), plain_loops(tokens, columns, sizes))
            << num_tokens << " tokens, dim " << dim << ", " << num_columns << " columns";
      }
    }
  }
}

// What makes a token fall into the same bucket in a batch, in a prefix and alone.
TEST(LshProjection, BitsOfARowDoNotDependOnTheNumberOfRows) {
  RandomStream stream(2, "lsh projection");
  for (const std::int64_t num_columns : {1, 3, 8, 13, 32, 37}) {
    for (const std::int64_t dim : {1, 7, 64, 129}) {
      constexpr std::int64_t kTokens = 70;
      const auto tokens = normal_numbers(elements(kTokens, dim), stream);
      const auto columns = normal_numbers(elements(dim, num_columns), stream);
      const ProjectionSizes sizes{.num_tokens = kTokens, .dim = dim, .num_columns = num_columns};
      const auto whole = projected_by_kernel(tokens.data(), columns, sizes);
      for (const std::int64_t part : {1, 2, 5, 64}) {
        for (std::int64_t first = 0; first + part <= kTokens; first += part) {
          const auto rows = projected_by_kernel(tokens.data() + first * dim, columns,
                                                {.num_tokens = part, .dim = dim, .num_columns = num_columns});
          ASSERT_EQ(std::memcmp(rows.data(), whole.data() + first * num_columns, rows.size() * sizeof(double)), 0)
              << part << " rows from " << first << ", dim " << dim << ", " << num_columns << " columns";
        }
      }
    }
  }
}

}  // namespace
}  // namespace routing::kernels::lsh_projection_test
