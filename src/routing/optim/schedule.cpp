#include "routing/optim/schedule.h"

#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace routing {
namespace {

double ratio(std::int64_t upper, std::int64_t lower) {
  return static_cast<double>(upper) / static_cast<double>(lower);
}

double cosine_share(const TrainConfig& config, std::int64_t step) {
  if (step <= config.warmup_steps) return ratio(step, config.warmup_steps);
  const std::int64_t end = config.decay_steps > 0 ? config.decay_steps : config.steps;
  if (step >= end) return config.final_learning_rate;
  const double progress = ratio(step - config.warmup_steps, end - config.warmup_steps);
  const double height = (1.0 + std::cos(std::numbers::pi * progress)) / 2.0;
  return config.final_learning_rate + (1.0 - config.final_learning_rate) * height;
}

// Of the peak.
double share(const TrainConfig& config, std::int64_t step) {
  const std::int64_t warmup = std::max<std::int64_t>(1, config.warmup_steps);
  switch (config.schedule) {
    case ScheduleKind::constant:
      return std::min(1.0, ratio(step, warmup));
    case ScheduleKind::vaswani:
      return std::min(ratio(step, warmup), std::sqrt(ratio(warmup, step)));
    case ScheduleKind::cosine:
      return cosine_share(config, step);
    case ScheduleKind::rsqrt:
      return std::min(1.0, std::sqrt(ratio(warmup, step)));
  }
  throw ConfigError("train.schedule: no such kind");
}

}  // namespace

double learning_rate(const TrainConfig& config, std::int64_t step) {
  require<InputError>(step >= 1, "learning rate of step ", step, " asked for, but steps count from 1");
  return config.learning_rate * share(config, step);
}

}  // namespace routing
