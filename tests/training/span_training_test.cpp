// What spans learn: to reach as far back as there is something to read, and no farther than it pays.
#include "routing/core/random.h"
#include "routing/training/learner.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace routing::span_training_test {
namespace {

constexpr std::int64_t kSymbols = 16;
constexpr std::int64_t kLength = 128;

// Every symbol is that of a place 1 to `farthest` back, each as likely; one in four, and the first ones, are new. What
// comes next is then best guessed from all of the last `farthest` symbols, alike.
TokenBatch repeating(std::int64_t batch, std::int64_t farthest, std::uint64_t number) {
  at::Tensor tokens = at::empty({batch, kLength}, at::kLong);
  RandomStream stream(11, "repeating", {number});
  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    auto* const symbol = tokens.data_ptr<std::int64_t>() + sequence * kLength;
    for (std::int64_t i = 0; i < kLength; ++i) {
      const bool is_new = i < farthest || stream.below(4) == 0;
      symbol[i] = is_new ? stream.below(kSymbols) : symbol[i - 1 - stream.below(static_cast<std::uint32_t>(farthest))];
    }
  }
  return {.tokens = tokens, .sample_ids = at::arange(batch, at::kLong), .index = static_cast<std::int64_t>(number)};
}

// One layer of one head with a span, and nothing else that could know distances.
ExperimentConfig one_head(double initial, double penalty) {
  ExperimentConfig config = small_experiment("span");
  config.model.vocab_size = kSymbols;
  config.model.layers = 1;
  config.model.width = 16;
  config.attention.heads = 1;
  config.attention.content_heads = 1;
  config.patterns.span = {.pattern = SpanPattern{.limit = 64, .ramp = 4, .initial = initial, .penalty = penalty},
                          .relative = RelativePosition::none};
  config.train.batch_size = 8;
  config.train.sequence_length = kLength;
  config.train.steps = 500;
  config.train.learning_rate = 1e-2;
  config.train.schedule = ScheduleKind::constant;
  config.train.warmup_steps = 10;
  return config;
}

double span_after(const ExperimentConfig& config, std::int64_t farthest, int steps) {
  Learner learner(config);
  double span = 0.0;
  for (int step = 0; step < steps; ++step) {
    const StepResult result =
        learner.step(std::vector{repeating(config.train.batch_size, farthest, static_cast<std::uint64_t>(step))});
    span = result.spans.at(0).span;
    EXPECT_GE(span, 0.0);
    EXPECT_LE(span, 64.0);
  }
  return span;
}

TEST(SpanTraining, ASpanGrowsToAPlantedDistance) {
  for (const std::int64_t farthest : {12, 32}) {
    const double span = span_after(one_head(1.0 / 64, 0.0), farthest, 400);
    EXPECT_GT(span, 0.75 * static_cast<double>(farthest)) << "of " << farthest;
    EXPECT_LT(span, 1.5 * static_cast<double>(farthest)) << "of " << farthest;
  }
}

TEST(SpanTraining, ASpanThatFindsNothingShrinksUnderItsPenalty) {
  constexpr std::int64_t kNothing = kLength;  // all symbols are new
  EXPECT_LT(span_after(one_head(0.75, 1e-2), kNothing, 200), 1.0);
}

}  // namespace
}  // namespace routing::span_training_test
