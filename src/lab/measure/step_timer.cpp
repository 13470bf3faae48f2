#include "lab/measure/step_timer.h"

#include "lab/measure/timing.h"
#include "routing/training/run_samples.h"

#include <algorithm>

namespace routing {
namespace {

constexpr int kUntimedSteps = 1;
constexpr std::int64_t kTimedTokens = 32;

TokenBatch scattered_tokens(const ExperimentConfig& config) {
  const TrainConfig& train = config.train;
  const at::Tensor numbers = at::arange(train.batch_size * train.sequence_length, at::kLong);
  return {.tokens = numbers.mul(2654435761L)
                        .bitwise_right_shift(7)
                        .remainder(config.model.vocab_size)
                        .view({train.batch_size, train.sequence_length}),
          .sample_ids = at::arange(train.batch_size, at::kLong)};
}

}  // namespace

StepTimer::StepTimer(const ExperimentConfig& config, const TrainingData* data)
    : learner_(data == nullptr ? config : data->config()) {
  for (std::int64_t i = 0; i < config.train.accumulation; ++i) {
    batches_.push_back(data == nullptr ? scattered_tokens(config) : data->batch(i));
  }
  for (int i = 0; i < kUntimedSteps; ++i) learner_.step(batches_);
}

double StepTimer::seconds_of_a_sample() {
  const std::int64_t all = length_of_samples(learner_.model().config());
  const std::int64_t some = std::min(all, kTimedTokens);
  const double seconds = bench::seconds_of([&] { draw_sample(learner_, {.step = 1, .tokens = some}); });
  return seconds * static_cast<double>(all) / static_cast<double>(some);
}

double StepTimer::seconds_of_a_step() {
  return bench::seconds_of([&] { learner_.step(batches_); });
}

}  // namespace routing
