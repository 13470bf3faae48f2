// The learning rate of every step.
//
// With lr = train.learning_rate, W = train.warmup_steps, E = train.decay_steps (train.steps if that is 0) and f =
// train.final_learning_rate, at step t, counted from 1:
//
//   constant   lr min(1, t / W)
//   vaswani    lr min(t / W, sqrt(W / t))
//   cosine     lr t / W up to W, then lr (f + (1 - f) (1 + cos(pi (t - W) / (E - W))) / 2), from E on lr f
//   rsqrt      lr min(1, sqrt(W / t)): flat, then falling; there is no linear warm-up
//
// vaswani is the schedule of "Attention is all you need", width^-0.5 min(t^-0.5, t W^-1.5), up to a factor: we name
// its peak, which it reaches at W, so the width of the model cancels. rsqrt is the one of the authors' code for Routing
// Transformers; its square root falls from W on. The paper's text has a linear warm-up before it: with one of W steps
// that is vaswani, which equals min(1, t / W) rsqrt.
//
// W = 0 means no warm-up in constant and cosine, and counts as 1 in vaswani and rsqrt.
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>

namespace routing {

// `step` is at least 1: an InputError otherwise.
double learning_rate(const TrainConfig& config, std::int64_t step);

}  // namespace routing
