#include "routing/kernels/pointwise/dropout.h"

#include "routing/core/parallel.h"
#include "routing/core/random.h"
#include "routing/kernels/dispatch/simd_level.h"

#include <algorithm>

namespace routing::kernels {
namespace {

// Philox on this many counters at once: one word of all of them after the other, as vector registers hold them.
constexpr std::int64_t kCounters = 16;
constexpr std::int64_t kColumns = 4 * kCounters;

struct Words {
  std::uint32_t word[4][kCounters];
};

// One counter after the other with all rounds written out: a loop that the compiler turns into vectors of counters.
[[gnu::always_inline]] inline void philox_rounds(std::uint64_t key, Words& words) {
  const auto first_key0 = static_cast<std::uint32_t>(key);
  const auto first_key1 = static_cast<std::uint32_t>(key >> 32U);
  for (std::int64_t c = 0; c < kCounters; ++c) {
    std::uint32_t word0 = words.word[0][c];
    std::uint32_t word1 = words.word[1][c];
    std::uint32_t word2 = words.word[2][c];
    std::uint32_t word3 = words.word[3][c];
    std::uint32_t key0 = first_key0;
    std::uint32_t key1 = first_key1;
#pragma GCC unroll 10
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * word0;
      const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * word2;
      word0 = static_cast<std::uint32_t>(product1 >> 32U) ^ word1 ^ key0;
      word1 = static_cast<std::uint32_t>(product1);
      word2 = static_cast<std::uint32_t>(product0 >> 32U) ^ word3 ^ key1;
      word3 = static_cast<std::uint32_t>(product0);
      key0 += kPhiloxWeyl0;
      key1 += kPhiloxWeyl1;
    }
    words.word[0][c] = word0;
    words.word[1][c] = word1;
    words.word[2][c] = word2;
    words.word[3][c] = word3;
  }
}

struct RowDraw {
  std::uint64_t key = 0;
  std::uint32_t token = 0;
  std::uint32_t drop_below = 0;
};

template <class Number>
[[gnu::always_inline]] inline void drop_row(const Number* inputs, std::int64_t width, const RowDraw& draw, Number scale,
                                            Number* outputs) {
  for (std::int64_t first = 0; first < width; first += kColumns) {
    Words words;
    for (std::int64_t c = 0; c < kCounters; ++c) {
      words.word[0][c] = static_cast<std::uint32_t>(first / 4 + c);
      words.word[1][c] = draw.token;
      words.word[2][c] = 0;
      words.word[3][c] = 0;
    }
    philox_rounds(draw.key, words);
    Number factors[kColumns];
    for (std::int64_t c = 0; c < kCounters; ++c) {
      for (std::int64_t w = 0; w < 4; ++w) factors[4 * c + w] = words.word[w][c] >= draw.drop_below ? scale : Number{0};
    }
    const std::int64_t columns = std::min(kColumns, width - first);
    // A product with 0 would let an infinite or missing number through.
    for (std::int64_t i = 0; i < columns; ++i) {
      outputs[first + i] = factors[i] != Number{0} ? inputs[first + i] * factors[i] : Number{0};
    }
  }
}

// inputs and outputs begin at the first row of the range.
template <class Number>
void drop_rows(const Number* inputs, const DropoutRange& range, const DropoutShape& shape, const std::uint64_t* keys,
               double probability, Number* outputs) {
  constexpr std::int64_t kGrain = 32;
  const auto drop_below = static_cast<std::uint32_t>(probability * 0x1.0p32);
  const auto scale = static_cast<Number>(1.0 / (1.0 - probability));
  parallel_for(0, range.num_rows, kGrain, [&](std::int64_t first, std::int64_t last) {
    at_best_level([&]() __attribute__((always_inline)) {
      for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t place = range.first_row + row;
        drop_row(inputs + row * shape.width, shape.width,
                 {.key = keys[place / shape.num_tokens],
                  .token = static_cast<std::uint32_t>(shape.first_token + place % shape.num_tokens),
                  .drop_below = drop_below},
                 scale, outputs + row * shape.width);
      }
    });
  });
}

DropoutRange all_rows(const DropoutShape& shape) {
  return {.first_row = 0, .num_rows = shape.num_samples * shape.num_tokens};
}

}  // namespace

void dropout(const float* inputs, const DropoutShape& shape, const std::uint64_t* keys, double probability,
             float* outputs) {
  drop_rows(inputs, all_rows(shape), shape, keys, probability, outputs);
}

void dropout(const double* inputs, const DropoutShape& shape, const std::uint64_t* keys, double probability,
             double* outputs) {
  drop_rows(inputs, all_rows(shape), shape, keys, probability, outputs);
}

void dropout_rows(const DropoutRange& range, const DropoutShape& shape, const std::uint64_t* keys, double probability,
                  float* rows) {
  drop_rows<float>(rows, range, shape, keys, probability, rows);
}

}  // namespace routing::kernels
