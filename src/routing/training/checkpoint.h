// A checkpoint: everything a run needs to go on as if it had never stopped.
#pragma once

#include "routing/training/learner.h"
#include "routing/training/run_directory.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace routing {

// What the loop knows beside weights and optimiser. Random streams and the place in the data need no state of their
// own: both are functions of seed and step.
struct TrainerState {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  double seconds = 0.0;  // of training so far, over all its parts
  // The mean loss since the last line of the log.
  double loss_sum = 0.0;
  std::int64_t loss_steps = 0;
  std::int64_t last_eval_step = -1;
  double last_eval_nats = std::numeric_limits<double>::quiet_NaN();
  double best_eval_nats = std::numeric_limits<double>::infinity();
  std::int64_t best_step = -1;
  // Of the training data, so that a run does not go on with others.
  std::int64_t data_tokens = 0;
  std::string data_hash;
  std::string tokenizer_hash;
  std::string data_label;  // "partial data", or nothing
  std::string version;
  BucketOrder bucket_order;  // of runs over several ranks: see GradientReducer
};
std::string to_text(const TrainerState& state);
// Throws a FileError that begins with `origin`.
TrainerState state_from_text(const std::string& text, const std::string& origin);

// Written to a temporary sibling, synced, renamed, DONE last. Throws a FileError with path and reason; what was there
// before stays. A step is saved once: weights and optimiser cannot have changed since, so a second time only
// trainer.json is written. The optimiser's state is given as it was gathered from the ranks.
void write_checkpoint(const RunDirectory& run, Learner& learner, const TrainerState& state,
                      const std::map<std::string, at::Tensor>& optimizer_state);

TrainerState read_trainer_state(const CheckpointPlace& place);
// Everything that a checkpoint holds, however many ranks wrote it.
struct CheckpointContents {
  TrainerState state = {};
  std::map<std::string, at::Tensor> model = {};
  std::map<std::string, at::Tensor> optimizer = {};
};
// Throws a ConfigError if the checkpoint was made with another configuration (see require_same_run).
CheckpointContents read_checkpoint(const CheckpointPlace& place, const ExperimentConfig& config);

}  // namespace routing
