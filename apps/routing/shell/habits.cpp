#include "shell/habits.h"

#include "routing/config/text/other_names.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace routing {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "--sequence-length" of train.sequence_length.
std::string short_option_of(std::string_view key) {
  std::string option = "--" + std::string(key.substr(key.find('.') + 1));
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

}  // namespace

HabitAnswer answer_to_habit(const std::string& option, const std::function<bool(const std::string&)>& has) {
  std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  if (is_one_of(name, {"device", "gpu", "gpus", "cuda", "use-gpu", "no-cuda", "n-gpu", "accelerator", "tpu", "mps"})) {
    return {"everything runs on the processor; there is no GPU code", "leave it out; --threads N says how many cores"};
  }
  if (is_one_of(name, {"epochs", "epoch", "num-epochs", "n-epochs", "max-epochs", "num-train-epochs"})) {
    if (!has("--steps")) return {};
    return {"training is counted in steps",
            "--steps N; one epoch is the tokens of train / (train.batch_size x train.sequence_length) steps, and the "
            "progress line counts epochs"};
  }
  if (is_one_of(name, {"output-dir", "output", "out-dir", "save-dir", "logdir", "log-dir", "run-dir", "workdir"})) {
    return has("--out") ? HabitAnswer{"did you mean '--out'?"} : HabitAnswer{};
  }
  if (is_one_of(name, {"num-workers", "workers", "n-jobs", "jobs"})) {
    return {"did you mean '--threads'?"};
  }
  if (is_one_of(name, {"nproc", "nproc-per-node", "world-size", "num-processes"}) && has("--ranks")) {
    return {"did you mean '--ranks'?"};
  }
  if (is_one_of(name, {"length", "max-length", "max-tokens", "num-tokens", "n-tokens"}) && has("--max-new-tokens")) {
    return {"did you mean '--max-new-tokens'?"};
  }
  const std::string_view key = key_called(name);
  if (key.empty()) return {};
  const std::string short_option = key == "data.path" ? "--data" : short_option_of(key);
  if (has(short_option)) return {"did you mean '" + short_option + "'?"};
  if (!has("--set")) return {};
  return {"the configuration key is " + std::string(key), "--set " + std::string(key) + "=VALUE"};
}

}  // namespace routing
