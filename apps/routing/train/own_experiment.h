// What `routing train` takes for data without a preset, and how --minutes become steps.
#pragma once

#include "routing/config/experiment.h"
#include "shell/experiment_options.h"
#include "train/training_display.h"

namespace routing {

// Without --minutes and --steps, a run without a preset takes this long.
inline constexpr double kUsualMinutes = 10.0;

// The preset that fits the data and the machine, with what the options set. Says which and why. Its steps take
// --minutes, unless their number is given.
ExperimentConfig experiment_for_data(const ExperimentOptions& options, TrainingDisplay& display);

// Sets the number of steps to what fits into train.minutes here, by some that are timed, and with it what follows from
// it and is not set: warm-up, decay, and how often it evaluates and saves. Only a run that takes a quarter longer is
// stopped before its steps are done.
ExperimentConfig fitted_to_minutes(ExperimentConfig config, const ExperimentOptions& options, TrainingDisplay& display);

}  // namespace routing
