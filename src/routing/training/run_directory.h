// The folder of a run, and which of its checkpoints are whole.
//
//   lock                            held by the process that trains
//   config.toml                     the resolved configuration
//   config-to-step-00001000.toml    the one before, of a run that went on from there with another
//   metrics.jsonl                   one object per line
//   clusters.jsonl                  the same of what each cluster was given
//   samples/step-00001000.txt       what the model made up then, or .png
//   events.out.tfevents.…           the same for TensorBoard
//   checkpoints/step-00001000/      model.safetensors, state.safetensors, trainer.json, and DONE when all is written
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace routing {

struct CheckpointPlace {
  std::int64_t step = 0;
  std::filesystem::path folder;

  std::filesystem::path model() const { return folder / "model.safetensors"; }
  std::filesystem::path state() const { return folder / "state.safetensors"; }
  std::filesystem::path trainer() const { return folder / "trainer.json"; }
};

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
  std::vector<std::vector<std::string>> bucket_order;  // of runs over several ranks: see GradientReducer
};
std::string to_text(const TrainerState& state);
// Throws a FileError that begins with `origin`.
TrainerState state_from_text(const std::string& text, const std::string& origin);
TrainerState read_trainer_state(const CheckpointPlace& place);

class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path config_file() const { return folder_ / "config.toml"; }
  std::filesystem::path metrics_file() const { return folder_ / "metrics.jsonl"; }
  std::filesystem::path clusters_file() const { return folder_ / "clusters.jsonl"; }
  std::filesystem::path checkpoints_folder() const { return folder_ / "checkpoints"; }
  std::filesystem::path samples_folder() const { return folder_ / "samples"; }
  // `ending` is ".txt" or ".png".
  std::filesystem::path sample_file(std::int64_t step, const std::string& ending) const;
  // The step of a file of samples_folder() by its name; -1 of any other.
  static std::int64_t step_of_sample(const std::filesystem::path& name);
  CheckpointPlace checkpoint(std::int64_t step) const;

  // Does the folder hold a run: a config.toml?
  bool exists() const {
    std::error_code ignored;
    return std::filesystem::exists(config_file(), ignored);
  }
  // Or a model without its run, as `routing export` writes it: a model.safetensors beside config.toml?
  bool is_export() const;
  // Throws a ConfigError if a run is there already.
  void require_new() const;
  // Makes the folder and writes config.toml. Throws a ConfigError if a run is there already.
  void create(const ExperimentConfig& config) const;
  // As config.toml says; a FileError if there is no run.
  ExperimentConfig read_config() const;
  void replace_config(const ExperimentConfig& config) const;
  // Keeps config.toml as that of the steps up to this one.
  void keep_config_of_steps_to(std::int64_t step) const;

  // Checkpoints with a DONE, by step.
  std::vector<CheckpointPlace> whole_checkpoints() const;
  std::optional<CheckpointPlace> newest_checkpoint() const;
  // "last", "best" (by the newest checkpoint's word; the newest if it names none or that one is gone) or a step; a
  // FileError lists what there is.
  CheckpointPlace find_checkpoint(const std::string& which) const;

  // Removes what an interrupted save left behind, and whole checkpoints beyond the `keep` newest and the best. What
  // cannot be removed stays and does no harm but take space.
  void remove_leftovers() const;
  void remove_old_checkpoints(std::int64_t keep, std::int64_t best_step) const;
  // For a resume from this step: later ones will be drawn again. Throws a FileError for one that cannot be removed.
  void remove_samples_after(std::int64_t step) const;

 private:
  std::filesystem::path folder_;
};

// A key that a run and what it goes on with have different values for.
struct ChangedKey {
  std::string key;
  std::string before;
  std::string now;
};
std::vector<ChangedKey> changed_keys(const ExperimentConfig& before, const ExperimentConfig& now);

// Keys that change what is learned from a step on, which a log has to say: what helps a run that diverged
// (train.learning_rate, train.clip), and what lets sequences grow (train.sequence_length, train.shortest_length,
// train.batch_size, routing.window).
bool changes_what_is_learned(const std::string& key);

// Throws a ConfigError that lists the keys in which a run may not go on with another configuration: all but those, how
// long it runs, how many ranks share a sequence, how often it logs, evaluates, saves and draws samples, and where its
// data lie. Of a model with a memory sequences do not grow: what it remembers is of segments and streams as they are.
void require_same_run(const ExperimentConfig& run, const ExperimentConfig& asked, const std::string& folder);

}  // namespace routing
