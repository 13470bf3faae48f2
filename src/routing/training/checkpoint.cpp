#include "routing/training/checkpoint.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/model/weights.h"
#include "routing/storage/safetensors.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <system_error>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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

TrainerState from_json(const Json& json) {
  TrainerState state;
  json.at("step").get_to(state.step);
  json.at("tokens").get_to(state.tokens);
  json.at("seconds").get_to(state.seconds);
  json.at("loss_sum").get_to(state.loss_sum);
  json.at("loss_steps").get_to(state.loss_steps);
  json.at("last_eval_step").get_to(state.last_eval_step);
  read_number(json, "last_eval_nats", state.last_eval_nats);
  read_number(json, "best_eval_nats", state.best_eval_nats);
  json.at("best_step").get_to(state.best_step);
  // Runs of the first versions, which knew only bytes.
  json.at(json.contains("data_tokens") ? "data_tokens" : "data_bytes").get_to(state.data_tokens);
  json.at("data_hash").get_to(state.data_hash);
  state.tokenizer_hash = json.value("tokenizer_hash", std::string(16, '0'));
  state.data_label = json.value("data_label", "");
  json.at("version").get_to(state.version);
  state.bucket_order = json.value("bucket_order", BucketOrder());
  return state;
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  fs::create_directories(path, error);
  require<FileError>(!error, path.string(), ": the checkpoint's folder cannot be made: ", error.message(),
                     "; free space or choose a `run` that can be written");
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

void write_checkpoint(const RunDirectory& run, Learner& learner, const TrainerState& state,
                      const std::map<std::string, at::Tensor>& optimizer_state) {
  const CheckpointPlace place = run.checkpoint(state.step);
  const CheckpointPlace partial{state.step, place.folder.string() + ".partial"};
  std::error_code error;
  if (fs::exists(place.folder / "DONE", error)) {
    write_file_at_once(place.trainer(), to_text(state));
    return;
  }
  make_folder(partial.folder);
  try {
    save_model(partial.model(), learner.model(),
               {.version = state.version, .tokenizer_hash = state.tokenizer_hash, .data_label = state.data_label});
    write_safetensors(partial.state(), {.tensors = optimizer_state, .metadata = {{"format", "pt"}}});
    write_file_at_once(partial.trainer(), to_text(state));
    // Without a DONE this is what a kill left behind.
    fs::remove_all(place.folder, error);
    fs::rename(partial.folder, place.folder, error);
    require<FileError>(!error, place.folder.string(), ": the checkpoint cannot be put in place: ", error.message(),
                       "; see that the folder can be written");
    sync_folder(run.checkpoints_folder());
    write_file_at_once(place.folder / "DONE", std::string());
  } catch (...) {
    fs::remove_all(partial.folder, error);
    throw;
  }
}

TrainerState read_trainer_state(const CheckpointPlace& place) {
  return state_from_text(read_file(place.trainer()), place.trainer().string());
}

CheckpointContents read_checkpoint(const CheckpointPlace& place, const ExperimentConfig& config) {
  require_same_run(load_model_config(place.model()), config, place.folder.string());
  CheckpointContents contents{.state = read_trainer_state(place)};
  require<FileError>(contents.state.step == place.step, place.trainer().string(), ": says step ", contents.state.step,
                     ", but its folder is that of step ", place.step, "; take another checkpoint of the run");
  contents.model = read_safetensors(place.model()).tensors;
  contents.optimizer = read_safetensors(place.state()).tensors;
  return contents;
}

}  // namespace routing
