// How long does a training step of a configuration take here? Nothing is kept.
#pragma once

#include "routing/training/learner.h"
#include "routing/training/training_data.h"

#include <cstdint>
#include <vector>

namespace routing {

class StepTimer {
 public:
  // With the first batches of the data, or with scattered tokens where there are none; the vocabulary's size must then
  // be known. Takes the first, slower steps already, which make memory and packed weights that later ones use again.
  explicit StepTimer(const ExperimentConfig& config, const TrainingData* data = nullptr);

  // Of one more step.
  double seconds_of_a_step();
  // Of a sample that the run would draw (training/run_samples.h), from its first tokens.
  double seconds_of_a_sample();

 private:
  Learner learner_;
  std::vector<TokenBatch> batches_;
};

}  // namespace routing
