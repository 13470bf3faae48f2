#include "routing/kernels/optim/adafactor_step.h"

#include "routing/core/parallel.h"
#include "routing/core/random.h"
#include "support/framed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace routing::kernels::adafactor_step_test {
namespace {

struct Shape {
  std::int64_t matrices = 1, rows = 1, columns = 1;
  std::size_t numbers() const { return static_cast<std::size_t>(matrices * rows * columns); }
  std::size_t all_rows() const { return static_cast<std::size_t>(matrices * rows); }
  std::size_t all_columns() const { return static_cast<std::size_t>(matrices * columns); }
  std::string text() const {
    return std::to_string(matrices) + "x" + std::to_string(rows) + "x" + std::to_string(columns);
  }
};

// A parameter with its moments, for the kernel (float) and for the plain loops (double).
template <class Number>
struct Matrix {
  Shape shape;
  std::vector<Number> value, rows, columns;
};

Matrix<float> fresh(const Shape& shape, std::vector<float> value) {
  return {.shape = shape,
          .value = std::move(value),
          .rows = std::vector<float>(shape.all_rows()),
          .columns = std::vector<float>(shape.all_columns())};
}

std::vector<double> widened(const std::vector<float>& numbers) {
  return {numbers.begin(), numbers.end()};
}

void kernel_step(Matrix<float>& matrix, const std::vector<float>& gradient, const AdafactorStep& step) {
  std::vector<float> value = framed(matrix.value);
  std::vector<float> rows = framed(matrix.rows);
  std::vector<float> columns = framed(matrix.columns);
  adafactor_step(AdafactorMatrices{.value = value.data() + kFrame,
                                   .gradient = gradient.data(),
                                   .row_moment = rows.data() + kFrame,
                                   .column_moment = columns.data() + kFrame,
                                   .matrices = matrix.shape.matrices,
                                   .rows = matrix.shape.rows,
                                   .columns = matrix.shape.columns},
                 step);
  matrix.value = unframed(value);
  matrix.rows = unframed(rows);
  matrix.columns = unframed(columns);
}

void kernel_step(std::vector<float>& value, std::vector<float>& moment, const std::vector<float>& gradient,
                 const AdafactorStep& step) {
  std::vector<float> values = framed(value);
  std::vector<float> moments = framed(moment);
  adafactor_step(AdafactorVector{.value = values.data() + kFrame,
                                 .gradient = gradient.data(),
                                 .second_moment = moments.data() + kFrame,
                                 .count = static_cast<std::int64_t>(value.size())},
                 step);
  value = unframed(values);
  moment = unframed(moments);
}

// The last lines of the header, from the unclipped update on.
void plain_apply(std::vector<double>& value, std::vector<double> update, const AdafactorStep& step) {
  double value_squares = 0.0;
  double update_squares = 0.0;
  for (const double number : value) value_squares += number * number;
  for (const double number : update) update_squares += number * number;
  const auto count = static_cast<double>(value.size());
  const double clip =
      step.update_clip == 0.0 ? 1.0 : std::max(1.0, std::sqrt(update_squares / count) / step.update_clip);
  const double scale = step.relative_step ? std::max(std::sqrt(value_squares / count), 1e-3) : 1.0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    value[i] -= step.learning_rate * (step.decoupled_decay * value[i] + scale * update[i] / clip);
  }
}

void plain_step(Matrix<double>& matrix, const std::vector<float>& gradient, const AdafactorStep& step) {
  const double keep = 1.0 - std::pow(static_cast<double>(step.step), -step.decay_exponent);
  const auto rows = static_cast<std::size_t>(matrix.shape.rows);
  const auto columns = static_cast<std::size_t>(matrix.shape.columns);
  std::vector<double> update(matrix.value.size());
  for (std::size_t m = 0; m < static_cast<std::size_t>(matrix.shape.matrices); ++m) {
    const auto g = [&](std::size_t i, std::size_t j) {
      const std::size_t at = (m * rows + i) * columns + j;
      return step.gradient_scale * static_cast<double>(gradient[at]) + step.l2 * matrix.value[at];
    };
    double* const row_moment = matrix.rows.data() + m * rows;
    double* const column_moment = matrix.columns.data() + m * columns;
    double mean_row = 0.0;
    for (std::size_t i = 0; i < rows; ++i) {
      double mean = 0.0;
      for (std::size_t j = 0; j < columns; ++j) mean += (g(i, j) * g(i, j) + 1e-30) / static_cast<double>(columns);
      row_moment[i] = keep * row_moment[i] + (1.0 - keep) * mean;
      mean_row += row_moment[i] / static_cast<double>(rows);
    }
    for (std::size_t j = 0; j < columns; ++j) {
      double mean = 0.0;
      for (std::size_t i = 0; i < rows; ++i) mean += (g(i, j) * g(i, j) + 1e-30) / static_cast<double>(rows);
      column_moment[j] = keep * column_moment[j] + (1.0 - keep) * mean;
    }
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        update[(m * rows + i) * columns + j] = g(i, j) / std::sqrt(row_moment[i] * column_moment[j] / mean_row);
      }
    }
  }
  plain_apply(matrix.value, update, step);
}

void plain_step(std::vector<double>& value, std::vector<double>& moment, const std::vector<float>& gradient,
                const AdafactorStep& step) {
  const double keep = 1.0 - std::pow(static_cast<double>(step.step), -step.decay_exponent);
  std::vector<double> update(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    const double g = step.gradient_scale * static_cast<double>(gradient[i]) + step.l2 * value[i];
    moment[i] = keep * moment[i] + (1.0 - keep) * (g * g + 1e-30);
    update[i] = g / std::sqrt(moment[i]);
  }
  plain_apply(value, update, step);
}

std::vector<float> normal_numbers(std::size_t count, RandomStream& stream, double deviation = 1.0) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(deviation * stream.normal());
  return numbers;
}

// Values are sums of terms around 0.5 that may cancel; moments are sums of squares and right to a share of themselves.
void expect_near(const std::vector<float>& numbers, const std::vector<double>& expected, double smallest,
                 const std::string& what) {
  ASSERT_EQ(numbers.size(), expected.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_NEAR(numbers[i], expected[i], 1e-6 * (smallest + std::abs(expected[i]))) << what << " at " << i;
  }
}

TEST(AdafactorStep, HandWorkedFirstStepOfAMatrix) {
  // g = [[1, 1], [1, 3]]: means of squares 1 and 5 for rows and for columns, 3 over all. The averages of the numbers
  // are 1/3, 5/3, 5/3, 25/3, so u^2 = 3, 0.6, 0.6, 1.08 with mean 1.32. The value's rms is 2.
  const double root = std::sqrt(3.0);
  const double updates[] = {root, root / std::sqrt(5.0), root / std::sqrt(5.0), 0.6 * root};
  for (const bool clips : {false, true}) {
    Matrix<float> matrix = fresh({1, 2, 2}, {2.0F, -2.0F, 2.0F, 2.0F});
    kernel_step(matrix, {2.0F, 2.0F, 2.0F, 6.0F},
                {.learning_rate = 0.25, .update_clip = clips ? 0.5 : 0.0, .gradient_scale = 0.5});
    EXPECT_EQ(matrix.rows, (std::vector<float>{1.0F, 5.0F}));
    EXPECT_EQ(matrix.columns, (std::vector<float>{1.0F, 5.0F}));
    const double step = 0.25 * 2.0 / (clips ? std::sqrt(1.32) / 0.5 : 1.0);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(matrix.value[i], (i == 1 ? -2.0 : 2.0) - step * updates[i], 1e-6);
  }
}

TEST(AdafactorStep, HandWorkedTwoStepsOfAVectorOfZeros) {
  // Exponent 1: the second step keeps 1/2. v = (9, 16), then (5, 16); u = (1, -1), then (1 / sqrt(5), -1), both with an
  // rms of at most 1. The value has the size of the floor both times.
  std::vector<float> value{0.0F, 0.0F};
  std::vector<float> moment{0.0F, 0.0F};
  kernel_step(value, moment, {3.0F, -4.0F}, {.learning_rate = 0.5, .decay_exponent = 1.0});
  EXPECT_EQ(moment, (std::vector<float>{9.0F, 16.0F}));
  EXPECT_FLOAT_EQ(value[0], -0.0005F);
  EXPECT_FLOAT_EQ(value[1], 0.0005F);
  kernel_step(value, moment, {1.0F, -4.0F}, {.step = 2, .learning_rate = 0.5, .decay_exponent = 1.0});
  EXPECT_EQ(moment, (std::vector<float>{5.0F, 16.0F}));
  EXPECT_FLOAT_EQ(value[0], static_cast<float>(-0.0005 - 0.0005 / std::sqrt(5.0)));
  EXPECT_FLOAT_EQ(value[1], 0.001F);
}

TEST(AdafactorStep, TheFirstStepKeepsNothingAndLaterOnesMore) {
  EXPECT_EQ(adafactor_keep({.step = 1}), 0.0);
  EXPECT_DOUBLE_EQ(adafactor_keep({.step = 32}), 1.0 - 1.0 / 16.0);  // 32^0.8 = 2^4
  EXPECT_DOUBLE_EQ(adafactor_keep({.step = 4, .decay_exponent = 0.5}), 0.5);
  // Whatever the moments were before.
  std::vector<float> value{1.0F};
  std::vector<float> moment{77.0F};
  kernel_step(value, moment, {3.0F}, {.learning_rate = 0.5});
  EXPECT_EQ(moment[0], 9.0F);
}

TEST(AdafactorStep, StepSizeIsRelativeFlooredAndClipped) {
  EXPECT_DOUBLE_EQ(adafactor_step_size({.learning_rate = 0.5}, 16.0, 0.81), 2.0);
  EXPECT_DOUBLE_EQ(adafactor_step_size({.learning_rate = 0.5}, 16.0, 4.0), 1.0);
  EXPECT_DOUBLE_EQ(adafactor_step_size({.learning_rate = 0.5, .update_clip = 0.5}, 16.0, 4.0), 0.5);
  EXPECT_DOUBLE_EQ(adafactor_step_size({.learning_rate = 0.5, .update_clip = 0.0}, 16.0, 4.0), 2.0);
  EXPECT_DOUBLE_EQ(adafactor_step_size({.learning_rate = 0.5}, 1e-8, 0.0), 0.0005);
  EXPECT_DOUBLE_EQ(adafactor_step_size({.learning_rate = 0.5, .relative_step = false}, 16.0, 0.0), 0.5);
}

// Tiles are 128 x 512: sizes below, at and above, in either direction, and many matrices.
TEST(AdafactorStep, MatricesEqualPlainLoopsAtEveryTail) {
  RandomStream stream(1, "adafactor");
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 1, 37}, Shape{1, 37, 1}, Shape{1, 5, 8}, Shape{3, 4, 7},
                             Shape{40, 2, 3}, Shape{1, 128, 512}, Shape{1, 129, 513}, Shape{2, 260, 1027}}) {
    for (const int variant : {0, 1, 2}) {
      SCOPED_TRACE(shape.text() + " variant " + std::to_string(variant));
      Matrix<float> fast = fresh(shape, normal_numbers(shape.numbers(), stream, 0.5));
      Matrix<double> slow{
          .shape = shape, .value = widened(fast.value), .rows = widened(fast.rows), .columns = widened(fast.columns)};
      for (std::int64_t step = 1; step <= 4; ++step) {
        // Gradients that grow make updates above 1, which are clipped; shrinking ones stay below.
        const double size = variant == 0 ? std::pow(3.0, step) : std::pow(0.3, step);
        const AdafactorStep settings{.step = step,
                                     .learning_rate = 0.1,
                                     .update_clip = variant == 2 ? 0.0 : 1.0,
                                     .relative_step = variant != 1,
                                     .l2 = variant == 1 ? 0.03 : 0.0,
                                     .decoupled_decay = variant == 2 ? 0.2 : 0.0,
                                     .gradient_scale = 0.3};
        const std::vector<float> gradient = normal_numbers(shape.numbers(), stream, size);
        kernel_step(fast, gradient, settings);
        plain_step(slow, gradient, settings);
      }
      expect_near(fast.value, slow.value, 0.5, "value");
      expect_near(fast.rows, slow.rows, 0.0, "row moment");
      expect_near(fast.columns, slow.columns, 0.0, "column moment");
    }
  }
}

TEST(AdafactorStep, VectorsEqualPlainLoopsAtEveryTail) {
  RandomStream stream(2, "adafactor");
  for (const std::size_t count : {1UL, 7UL, 8UL, 9UL, 1000UL, 65536UL + 5UL}) {
    for (const bool grows : {false, true}) {
      SCOPED_TRACE(count);
      std::vector<float> value = normal_numbers(count, stream, 0.5);
      std::vector<float> moment(count);
      std::vector<double> slow_value = widened(value);
      std::vector<double> slow_moment(count);
      for (std::int64_t step = 1; step <= 4; ++step) {
        const AdafactorStep settings{.step = step,
                                     .learning_rate = 0.1,
                                     .l2 = grows ? 0.03 : 0.0,
                                     .decoupled_decay = grows ? 0.0 : 0.2,
                                     .gradient_scale = 0.3};
        const std::vector<float> gradient = normal_numbers(count, stream, std::pow(grows ? 3.0 : 0.3, step));
        kernel_step(value, moment, gradient, settings);
        plain_step(slow_value, slow_moment, gradient, settings);
      }
      expect_near(value, slow_value, 0.5, "value");
      expect_near(moment, slow_moment, 0.0, "moment");
    }
  }
}

TEST(AdafactorStep, BitsDoNotDependOnTheNumberOfThreads) {
  RandomStream stream(3, "adafactor");
  const Shape shape{2, 700, 1100};
  const std::vector<float> start = normal_numbers(shape.numbers(), stream);
  const std::vector<float> gradient = normal_numbers(shape.numbers(), stream);
  const int threads_before = num_threads();
  std::vector<Matrix<float>> matrices;
  std::vector<std::vector<float>> vectors;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    matrices.push_back(fresh(shape, start));
    vectors.push_back(start);
    std::vector<float> moment(start.size());
    for (std::int64_t step = 1; step <= 2; ++step) {
      kernel_step(matrices.back(), gradient, {.step = step, .learning_rate = 0.1, .update_clip = 0.3, .l2 = 0.1});
      kernel_step(vectors.back(), moment, gradient, {.step = step, .learning_rate = 0.1, .update_clip = 0.3});
    }
  }
  set_num_threads(threads_before);
  EXPECT_NE(matrices[0].value, start);
  for (const std::size_t other : {1UL, 2UL}) {
    EXPECT_EQ(matrices[0].value, matrices[other].value);
    EXPECT_EQ(matrices[0].rows, matrices[other].rows);
    EXPECT_EQ(matrices[0].columns, matrices[other].columns);
    EXPECT_EQ(vectors[0], vectors[other]);
  }
}

// The floor of 1e-30 keeps zeros from being divided by zero, alone or beside numbers of any size.
TEST(AdafactorStep, RowsColumnsAndVectorsOfZerosStayWhereTheyAre) {
  Matrix<float> matrix = fresh({1, 2, 2}, {1.0F, 2.0F, 3.0F, 4.0F});
  kernel_step(matrix, {0.0F, 0.0F, 0.0F, 0.0F}, {.learning_rate = 0.5});
  EXPECT_EQ(matrix.value, (std::vector<float>{1.0F, 2.0F, 3.0F, 4.0F}));
  EXPECT_EQ(matrix.rows, (std::vector<float>{1e-30F, 1e-30F}));
  kernel_step(matrix, {0.0F, 0.0F, 0.0F, 1e6F}, {.learning_rate = 0.5});
  EXPECT_EQ((std::vector<float>(matrix.value.begin(), matrix.value.end() - 1)), (std::vector<float>{1.0F, 2.0F, 3.0F}));
  EXPECT_LT(matrix.value[3], 4.0F);
  std::vector<float> value{1.0F, 2.0F};
  std::vector<float> moment{0.0F, 0.0F};
  kernel_step(value, moment, {0.0F, 0.0F}, {.learning_rate = 0.5});
  EXPECT_EQ(value, (std::vector<float>{1.0F, 2.0F}));
}

TEST(AdafactorStep, NothingHappensToNothing) {
  for (const Shape& shape : {Shape{0, 2, 2}, Shape{1, 0, 3}, Shape{1, 3, 0}}) {
    Matrix<float> matrix = fresh(shape, {});
    kernel_step(matrix, {}, {.learning_rate = 0.5});
    EXPECT_EQ(matrix.rows, std::vector<float>(shape.all_rows()));
    EXPECT_EQ(matrix.columns, std::vector<float>(shape.all_columns()));
  }
  std::vector<float> value;
  std::vector<float> moment;
  kernel_step(value, moment, {}, {.learning_rate = 0.5});
  EXPECT_TRUE(value.empty());
}

TEST(AdafactorStep, DecayIsPartOfTheGradientOrApart) {
  // Without a gradient, l2 makes every number a gradient of its own sign: a whole relative step of 0.25 x rms 2.
  // Decoupled decay shrinks by 0.25 x 0.5 and leaves no trace in the moments.
  Matrix<float> coupled = fresh({1, 1, 2}, {2.0F, -2.0F});
  kernel_step(coupled, {0.0F, 0.0F}, {.learning_rate = 0.25, .l2 = 0.5});
  EXPECT_FLOAT_EQ(coupled.value[0], 1.5F);
  EXPECT_FLOAT_EQ(coupled.value[1], -1.5F);
  EXPECT_FLOAT_EQ(coupled.rows[0], 1.0F);
  Matrix<float> decoupled = fresh({1, 1, 2}, {2.0F, -2.0F});
  kernel_step(decoupled, {0.0F, 0.0F}, {.learning_rate = 0.25, .decoupled_decay = 0.5});
  EXPECT_FLOAT_EQ(decoupled.value[0], 1.75F);
  EXPECT_FLOAT_EQ(decoupled.value[1], -1.75F);
  EXPECT_EQ(decoupled.rows[0], 1e-30F);
}

}  // namespace
}  // namespace routing::kernels::adafactor_step_test
