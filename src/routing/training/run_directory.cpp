#include "routing/training/run_directory.h"

#include "routing/config/keys.h"
#include "routing/config/toml.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/training/log/json_count.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <string_view>
#include <system_error>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const std::string kPrefix = "step-";
constexpr int kDigits = 8;

std::string folder_name(std::int64_t step) {
  const std::string digits = std::to_string(step);
  return kPrefix + std::string(static_cast<std::size_t>(std::max(0, kDigits - static_cast<int>(digits.size()))), '0') +
         digits;
}

// The step of a folder name, or -1 if it is not a checkpoint's.
std::int64_t step_of(const std::string& name) {
  if (name.size() < kPrefix.size() + kDigits || name.compare(0, kPrefix.size(), kPrefix) != 0) return -1;
  const std::string digits = name.substr(kPrefix.size());
  if (digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(digits);
}

// JSON has no infinity and no NaN: those are written as null and read as what the field starts with.
Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

void read_number(const Json& json, const char* key, double& value) {
  if (!json.at(key).is_null()) value = json.at(key).get<double>();
}

Json to_json(const TrainerState& state) {
  return {{"step", state.step},
          {"tokens", state.tokens},
          {"seconds", state.seconds},
          {"loss_sum", state.loss_sum},
          {"loss_steps", state.loss_steps},
          {"last_eval_step", state.last_eval_step},
          {"last_eval_nats", number_or_null(state.last_eval_nats)},
          {"best_eval_nats", number_or_null(state.best_eval_nats)},
          {"best_step", state.best_step},
          {"data_tokens", state.data_tokens},
          {"data_hash", state.data_hash},
          {"tokenizer_hash", state.tokenizer_hash},
          {"data_label", state.data_label},
          {"version", state.version},
          {"bucket_order", state.bucket_order}};
}

// Steps at which nothing was evaluated yet.
constexpr std::int64_t kNever = -1;

TrainerState from_json(const Json& json) {
  TrainerState state;
  state.step = count_in(json.at("step"));
  state.tokens = count_in(json.at("tokens"));
  json.at("seconds").get_to(state.seconds);
  json.at("loss_sum").get_to(state.loss_sum);
  state.loss_steps = count_in(json.at("loss_steps"));
  state.last_eval_step = count_in(json.at("last_eval_step"), kNever);
  read_number(json, "last_eval_nats", state.last_eval_nats);
  read_number(json, "best_eval_nats", state.best_eval_nats);
  state.best_step = count_in(json.at("best_step"), kNever);
  // Runs of the first versions, which knew only bytes.
  state.data_tokens = count_in(json.at(json.contains("data_tokens") ? "data_tokens" : "data_bytes"));
  json.at("data_hash").get_to(state.data_hash);
  state.tokenizer_hash = json.value("tokenizer_hash", std::string(16, '0'));
  state.data_label = json.value("data_label", "");
  json.at("version").get_to(state.version);
  state.bucket_order = json.value("bucket_order", state.bucket_order);
  return state;
}

}  // namespace

std::string to_text(const TrainerState& state) {
  return to_json(state).dump(2) + "\n";
}

TrainerState state_from_text(const std::string& text, const std::string& origin) {
  try {
    return from_json(Json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw FileError(origin + ": is not the trainer.json of a checkpoint (" + error.what() +
                    "); take another checkpoint of the run");
  }
}

TrainerState read_trainer_state(const CheckpointPlace& place) {
  return state_from_text(read_file(place.trainer()), place.trainer().string());
}

fs::path RunDirectory::sample_file(std::int64_t step, const std::string& ending) const {
  return samples_folder() / (folder_name(step) + ending);
}

std::int64_t RunDirectory::step_of_sample(const fs::path& name) {
  const std::string ending = name.extension().string();
  return ending == ".txt" || ending == ".png" ? step_of(name.stem().string()) : -1;
}

CheckpointPlace RunDirectory::checkpoint(std::int64_t step) const {
  return {step, checkpoints_folder() / folder_name(step)};
}

bool RunDirectory::is_export() const {
  std::error_code ignored;
  return fs::exists(folder_ / "model.safetensors", ignored);
}

void RunDirectory::require_new() const {
  require<ConfigError>(!exists(), folder_.string(),
                       ": holds a run already; go on with it by `resume`, or choose another `run`");
}

void RunDirectory::create(const ExperimentConfig& config) const {
  require_new();
  const std::error_code error = make_folders(checkpoints_folder());
  require<FileError>(!error, folder_.string(), ": the run's folder cannot be made: ", error.message(),
                     "; choose a `run` that can be written");
  replace_config(config);
}

void RunDirectory::replace_config(const ExperimentConfig& config) const {
  write_file_at_once(config_file(), to_toml(config));
}

void RunDirectory::keep_config_of_steps_to(std::int64_t step) const {
  write_file_at_once(folder_ / ("config-to-" + folder_name(step) + ".toml"), read_file(config_file()));
}

ExperimentConfig RunDirectory::read_config() const {
  require<FileError>(exists(), folder_.string(),
                     ": holds no run (no config.toml); give a folder that a training had as its `run`");
  const std::string text = read_file(config_file());
  ExperimentConfig config;
  apply_toml(config, text, config_file().string());
  return config;
}

std::vector<CheckpointPlace> RunDirectory::whole_checkpoints() const {
  std::vector<CheckpointPlace> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints_folder(), error)) {
    const std::int64_t step = step_of(entry.path().filename().string());
    if (step >= 0 && fs::exists(entry.path() / "DONE", error)) found.push_back({step, entry.path()});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return found;
}

std::optional<CheckpointPlace> RunDirectory::newest_checkpoint() const {
  const auto all = whole_checkpoints();
  return all.empty() ? std::nullopt : std::optional(all.back());
}

CheckpointPlace RunDirectory::find_checkpoint(const std::string& which) const {
  require<FileError>(exists(), folder_.string(),
                     ": holds no run (no config.toml); give a folder that a training had as its `run`");
  const auto all = whole_checkpoints();
  require<FileError>(!all.empty(), folder_.string(),
                     ": holds no whole checkpoint yet; train it on by `Trainer` with `resume`");
  if (which == "last") return all.back();
  std::int64_t step = -1;
  if (which == "best") {
    step = read_trainer_state(all.back()).best_step;
    if (step < 0) return all.back();
  } else if (!which.empty() && which.size() <= 18 && which.find_first_not_of("0123456789") == std::string::npos) {
    step = std::stoll(which);
  }
  std::string steps;
  for (const CheckpointPlace& place : all) {
    if (place.step == step) return place;
    steps += (steps.empty() ? "" : ", ") + std::to_string(place.step);
  }
  if (which == "best") return all.back();
  throw FileError(folder_.string() + ": has no whole checkpoint '" + which + "'; there are steps " + steps +
                  ", and the words best and last");
}

void RunDirectory::remove_leftovers() const {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(checkpoints_folder(), error)) {
    if (!fs::exists(entry.path() / "DONE", error)) leftovers.push_back(entry.path());
  }
  for (const fs::path& folder : {folder_, samples_folder()}) {
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.find(".part-") != std::string::npos) leftovers.push_back(entry.path());
    }
  }
  for (const fs::path& path : leftovers) fs::remove_all(path, error);
}

void RunDirectory::remove_old_checkpoints(std::int64_t keep, std::int64_t best_step) const {
  const auto all = whole_checkpoints();
  const std::size_t kept = static_cast<std::size_t>(std::max<std::int64_t>(keep, 1));
  if (all.size() <= kept) return;
  for (std::size_t i = 0; i + kept < all.size(); ++i) {
    if (all[i].step == best_step) continue;
    std::error_code error;
    // DONE first: a half-removed checkpoint must not count as whole.
    fs::remove(all[i].folder / "DONE", error);
    fs::remove_all(all[i].folder, error);
  }
}

void RunDirectory::remove_samples_after(std::int64_t step) const {
  std::error_code error;
  std::vector<fs::path> later;
  for (const auto& entry : fs::directory_iterator(samples_folder(), error)) {
    if (step_of_sample(entry.path().filename()) > step) later.push_back(entry.path());
  }
  for (const fs::path& path : later) {
    fs::remove(path, error);
    require<FileError>(!error, path.string(), ": cannot be removed: ", error.message(),
                       "; it is of a step that the run has not reached");
  }
}

std::vector<ChangedKey> changed_keys(const ExperimentConfig& before, const ExperimentConfig& now) {
  std::vector<ChangedKey> changes;
  for (const std::string& key : experiment_keys()) {
    ChangedKey change{.key = key, .before = get_key(before, key), .now = get_key(now, key)};
    if (change.before != change.now) changes.push_back(std::move(change));
  }
  return changes;
}

namespace {

const std::set<std::string>& growing_keys() {
  static const std::set<std::string> keys{"train.sequence_length", "train.shortest_length", "train.batch_size",
                                          "routing.window"};
  return keys;
}

}  // namespace

bool changes_what_is_learned(const std::string& key) {
  return key == "train.learning_rate" || key == "train.clip" || growing_keys().contains(key);
}

void require_same_run(const ExperimentConfig& run, const ExperimentConfig& asked, const std::string& folder) {
  static const std::set<std::string> may_differ{"name",
                                                "source",
                                                "train.steps",
                                                "train.minutes",
                                                "train.learning_rate",
                                                "train.clip",
                                                "train.log_every",
                                                "train.sequence_ranks",
                                                "train.eval_every",
                                                "train.eval_tokens",
                                                "train.checkpoint_every",
                                                "train.keep_checkpoints",
                                                "train.clusters_every",
                                                "train.sample_every",
                                                "train.sample_tokens",
                                                "data.path",
                                                "data.vocabulary",
                                                "data.cache",
                                                "data.require_whole",
                                                "eval.split",
                                                "eval.stride",
                                                "eval.batch_size",
                                                "eval.subwords_per_word",
                                                "eval.memory"};
  std::string differences;
  for (const auto& [key, before, now] : changed_keys(run, asked)) {
    if (may_differ.contains(key) || (run.memory.length == 0 && growing_keys().contains(key))) continue;
    for (const std::string_view piece : std::initializer_list<std::string_view>{
             differences.empty() ? "" : ", ", key, " (run: ", before, ", asked: ", now, ")"}) {
      differences += piece;
    }
  }
  require<ConfigError>(differences.empty(), folder, ": the run has another configuration: ", differences,
                       "; resume with its own (leave these out), or choose another `run`");
}

}  // namespace routing
