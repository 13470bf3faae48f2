// The folder of a run, and which of its checkpoints are whole.
//
//   lock                            held by the process that trains
//   config.toml                     the resolved configuration
//   config-to-step-00001000.toml    the one before, of a run that went on from there with another
//   metrics.jsonl                   one object per line
//   events.out.tfevents.…           the same for TensorBoard
//   checkpoints/step-00001000/      model.safetensors, state.safetensors, trainer.json, and DONE when all is written
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>
#include <filesystem>
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

class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path config_file() const { return folder_ / "config.toml"; }
  std::filesystem::path metrics_file() const { return folder_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints_folder() const { return folder_ / "checkpoints"; }
  CheckpointPlace checkpoint(std::int64_t step) const;

  // Does the folder hold a run: a config.toml?
  bool exists() const {
    std::error_code ignored;
    return std::filesystem::exists(config_file(), ignored);
  }
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

// Throws a ConfigError that lists the keys in which a run may not go on with another configuration: all but how long it
// runs, how often it logs, evaluates and saves, where its data lie, and what helps a run that diverged
// (train.learning_rate, train.clip).
void require_same_run(const ExperimentConfig& run, const ExperimentConfig& asked, const std::string& folder);

}  // namespace routing
