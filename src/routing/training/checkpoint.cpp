#include "routing/training/checkpoint.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/model/weights.h"
#include "routing/storage/safetensors.h"

#include <string>
#include <system_error>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

const std::string kMemoryPrefix = "memory.";  // of names in state.safetensors; the rest is the optimiser's

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  fs::create_directories(path, error);
  require<FileError>(!error, path.string(), ": the checkpoint's folder cannot be made: ", error.message(),
                     "; free space or choose a `run` that can be written");
}

}  // namespace

void write_checkpoint(const RunDirectory& run, Learner& learner, const TrainerState& state,
                      const GatheredState& gathered) {
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
    std::map<std::string, at::Tensor> tensors = gathered.optimizer;
    for (const auto& [name, tensor] : gathered.memory) tensors.emplace(kMemoryPrefix + name, tensor);
    write_safetensors(partial.state(), {.tensors = std::move(tensors), .metadata = {{"format", "pt"}}});
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

CheckpointContents read_checkpoint(const CheckpointPlace& place, const ExperimentConfig& config) {
  require_same_run(load_model_config(place.model()), config, place.folder.string());
  CheckpointContents contents{.state = read_trainer_state(place)};
  require<FileError>(contents.state.step == place.step, place.trainer().string(), ": says step ", contents.state.step,
                     ", but its folder is that of step ", place.step, "; take another checkpoint of the run");
  contents.model = read_safetensors(place.model()).tensors;
  for (const auto& [name, tensor] : read_safetensors(place.state()).tensors) {
    const bool remembered = name.starts_with(kMemoryPrefix);
    auto& part = remembered ? contents.memory : contents.optimizer;
    part.emplace(remembered ? name.substr(kMemoryPrefix.size()) : name, tensor);
  }
  return contents;
}

}  // namespace routing
