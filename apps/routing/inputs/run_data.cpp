#include "inputs/run_data.h"

#include "inputs/run_model.h"
#include "routing/core/error.h"
#include "routing/data/formats.h"
#include "routing/data/prepared.h"
#include "routing/model/weights.h"
#include "routing/training/training_data.h"
#include "train/training_display.h"

#include <algorithm>
#include <span>

namespace routing {
namespace {

namespace fs = std::filesystem;

OtherData other_data(const RunDataOptions& options) {
  return {.path = options.data, .vocabulary = options.vocabulary};
}

}  // namespace

RunModel load_run_model(const RunDataOptions& options, const std::string& command) {
  const fs::path path = model_file(options.run, options.checkpoint);
  require<ConfigError>(load_model_config(path).model.encoder_layers == 0, path.string(),
                       ": is an encoder-decoder, but ", command, " looks at decoder-only models");
  return {path, load_model(path)};
}

std::unique_ptr<Dataset> open_run_data(const RunDataOptions& options, const RunModel& run, bool quiet) {
  const ExperimentConfig& config = run.model->config();
  require<ConfigError>(!is_made_up(config.data.format), run.path.string(),
                       ": was trained on made-up data; models of real data can be looked at");
  require<ConfigError>(!options.data.empty() || !config.data.path.empty(), run.path.string(),
                       ": names no data; give some with --data PATH");
  TrainingDisplay display(quiet);
  auto data = std::make_unique<Dataset>(run_data_config(run.path, config, other_data(options)),
                                        PrepareOptions{.train_needed = is_own_data(other_data(options), config),
                                                       .notes = [&](const std::string& line) { display.say(line); }});
  require_tokens_of_run(run.path, *data);
  fitted_to(config, data->facts());
  return data;
}

std::int64_t tokens_from(const Dataset& data, const RunDataOptions& options) {
  const std::int64_t record = data.facts().record_length();
  return record > 0 ? record : std::max<std::int64_t>(1, data.part(options.split).tokens.size() - options.offset);
}

at::Tensor stretch_of(const Dataset& data, const RunDataOptions& options, std::int64_t count) {
  const TokenView tokens = data.part(options.split).tokens;
  const std::int64_t record = data.facts().record_length();
  const std::int64_t begin = record > 0 ? options.offset * record : options.offset;
  require<ConfigError>(record == 0 || count <= record, data.path().string(), ": ", count,
                       " tokens were asked for, but an image has ", record);
  require<ConfigError>(begin + count <= tokens.size(), data.path().string(), ": ", count, " tokens from --offset ",
                       options.offset, record > 0 ? " (an image)" : "", " on were asked for, but the ", options.split,
                       " part has ", tokens.size(),
                       record > 0 ? " tokens in " + std::to_string(tokens.size() / record) + " images" : " tokens");
  at::Tensor stretch = at::empty({1, count}, at::kLong);
  tokens.copy(begin, std::span(stretch.data_ptr<std::int64_t>(), static_cast<std::size_t>(count)));
  return stretch;
}

}  // namespace routing
