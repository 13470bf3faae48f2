// A checkpoint: everything a run needs to go on as if it had never stopped.
#pragma once

#include "routing/training/learner.h"
#include "routing/training/run_directory.h"

#include <map>
#include <string>

namespace routing {

// Written to a temporary sibling, synced, renamed, DONE last. Throws a FileError with path and reason; what was there
// before stays. A step is saved once: weights and optimiser cannot have changed since, so a second time only
// trainer.json is written. What the ranks keep apart is given as it was gathered from them.
struct GatheredState {
  std::map<std::string, at::Tensor> optimizer = {};
  std::map<std::string, at::Tensor> memory = {};  // of all streams; nothing of a model without memory
};
void write_checkpoint(const RunDirectory& run, Learner& learner, const TrainerState& state,
                      const GatheredState& gathered);

// Everything that a checkpoint holds, however many ranks wrote it.
struct CheckpointContents {
  TrainerState state = {};
  std::map<std::string, at::Tensor> model = {};
  std::map<std::string, at::Tensor> optimizer = {};
  std::map<std::string, at::Tensor> memory = {};
};
// Throws a ConfigError if the checkpoint was made with another configuration (see require_same_run).
CheckpointContents read_checkpoint(const CheckpointPlace& place, const ExperimentConfig& config);

}  // namespace routing
