#include "eval/eval_run.h"

#include "inputs/run_model.h"
#include "routing/core/error.h"
#include "routing/data/formats.h"
#include "routing/model/weights.h"
#include "routing/training/training_data.h"
#include "train/training_display.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

OtherData evaluated_data(const EvalOptions& options) {
  return {.path = options.data, .vocabulary = options.vocabulary};
}

DataConfig data_config(const EvalOptions& options, const ExperimentConfig& config, const fs::path& model) {
  DataConfig data = run_data_config(model, config, evaluated_data(options));
  if (options.split == "all") {
    data.split = "100%/0%/0%";
    if (data.vocabulary.empty()) data.vocabulary = kept_tokenizer(model, kind_of(config.data)).string();
  }
  if (!options.cache.empty()) data.cache = options.cache;
  data.require_whole = data.require_whole || options.require_whole;
  return data;
}

const DatasetPart& chosen_part(const EvalOptions& options, const Dataset& data) {
  if (options.split != "all") return data.part(part_name(options));
  require<ConfigError>(!data.has("valid") && !data.has("test"), data.path().string(),
                       ": has parts of its own; choose one with --split train, valid or test");
  return data.part(part_name(options));
}

}  // namespace

std::string unit_of(TokenKind kind) {
  switch (kind) {
    case TokenKind::words:
      return "bits/word";
    case TokenKind::subwords:
      return "bits/subword";
    case TokenKind::subpixels:
      return "bits/dim";
    case TokenKind::automatic:
    case TokenKind::bytes:
      break;
  }
  return "bits/byte";
}

std::string usual_split(const EvalOptions& options, const ExperimentConfig& config, const fs::path& model) {
  const OtherData other = evaluated_data(options);
  if (is_made_up(config.data.format) || is_own_data(other, config) || is_prepared(options.data)) return "test";
  const DataConfig data = run_data_config(model, config, other);
  const AnySource source = open_source(look_at_data(data), data.image_size);
  const std::vector<SourcePart>& parts = facts_of(source).parts;
  return parts.size() == 1 && parts.front().name == "train" ? "all" : "test";
}

std::string part_name(const EvalOptions& options) {
  return options.split == "all" ? "train" : options.split;
}

EvalRun open_eval_run(const EvalOptions& options, const fs::path& model, TrainingDisplay& display,
                      const EvalRank& rank) {
  EvalRun run{.path = model, .model = load_model(model), .ranks = rank.group};
  require<ConfigError>(!options.data.empty() || !run.config().data.path.empty(), model.string(),
                       ": names no data; give some with --data PATH");
  if (rank.group != nullptr && rank.on_machine != 0) rank.group->barrier();
  run.data =
      std::make_unique<Dataset>(data_config(options, run.config(), model),
                                PrepareOptions{.train_needed = is_own_data(evaluated_data(options), run.config()),
                                               .notes = [&](const std::string& line) { display.say(line); }});
  if (rank.group != nullptr && rank.on_machine == 0) rank.group->barrier();
  require_tokens_of_run(model, *run.data);
  fitted_to(run.config(), run.data->facts());
  return run;
}

std::int64_t tokens_to_read(const EvalOptions& options, const EvalRun& run) {
  const std::int64_t all = chosen_part(options, *run.data).tokens.size();
  return options.limit_tokens > 0 ? std::min(options.limit_tokens, all) : all;
}

LikelihoodOptions eval_windows(const EvalOptions& options, const EvalRun& run) {
  const ExperimentConfig& config = run.config();
  return {.sequence_length = options.sequence_length > 0 ? options.sequence_length : config.train.sequence_length,
          .stride = options.stride > 0 ? options.stride : config.eval.stride,
          .batch_size = options.batch_size > 0 ? options.batch_size : config.eval.batch_size,
          .limit_tokens = std::min(options.limit_tokens, chosen_part(options, *run.data).tokens.size()),
          .record_length = run.data->facts().record_length(),
          .memory = options.memory > 0 ? std::optional(options.memory) : std::nullopt,
          .precision = chosen_precision(options.precision, config)};
}

Likelihood evaluate(const EvalOptions& options, const EvalRun& run, TrainingDisplay& display,
                    const std::function<void(const ScoredWindow&)>& scored) {
  LikelihoodOptions windows = eval_windows(options, run);
  windows.progress = [&](std::int64_t done, std::int64_t all) { display.evaluation_progress(done, all); };
  windows.scored = scored;
  windows.ranks = run.ranks;
  windows.split_windows = options.split_sequence;
  Transformer model = run.model;  // shares the weights
  Likelihood likelihood = token_likelihood(*model, chosen_part(options, *run.data).tokens, windows);
  display.finish();
  return likelihood;
}

}  // namespace routing
