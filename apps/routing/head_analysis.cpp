#include "head_analysis.h"

#include "routing/core/error.h"
#include "routing/data/dataset.h"
#include "routing/model/weights.h"
#include "routing/training/training_data.h"
#include "run_model.h"
#include "training_display.h"

#include <algorithm>
#include <span>

namespace routing {
namespace {

namespace fs = std::filesystem;

// [sequences, n]: disjoint windows, or the first n tokens of records, spread evenly.
at::Tensor spread_sequences(const TokenView& part, std::int64_t n, std::int64_t record, std::int64_t wanted) {
  const std::int64_t pitch = record > 0 ? record : n;
  const std::int64_t available = record > 0 ? part.size() / record : part.size() / n;
  require<ConfigError>(n <= pitch && available >= 1, "the part has ", part.size(), " tokens, but a sequence has ", n,
                       record > 0 ? " of an image with " + std::to_string(record) : std::string(),
                       "; choose another --split or a smaller --sequence-length");
  const std::int64_t count = std::min(wanted, available);
  at::Tensor tokens = at::empty({count, n}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t window = i * available / count;
    part.copy(window * pitch, std::span(tokens.data_ptr<std::int64_t>() + i * n, static_cast<std::size_t>(n)));
  }
  return tokens;
}

}  // namespace

void add_head_analysis_options(CLI::App& app, HeadAnalysisOptions& options) {
  app.add_option("RUN", options.run, "whose heads to look at")->required()->group("Model");
  app.add_option("--checkpoint", options.checkpoint, "which checkpoint of a run: best, last, or a step")
      ->type_name("WHICH")
      ->capture_default_str()
      ->group("Model");
  app.add_option("--precision", options.precision, "of matrix products: fp32, bf16 or auto; default: as trained")
      ->type_name("P")
      ->group("Model");
  app.add_option("--data", options.data, "file or folder; default: what the model was trained on")
      ->type_name("PATH")
      ->group("Data");
  app.add_option("--vocabulary", options.vocabulary, "of words or subwords; default: the one the run keeps")
      ->type_name("FILE")
      ->group("Data");
  app.add_option("--split", options.split, "train, valid or test")
      ->type_name("PART")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->capture_default_str()
      ->group("Data");
  app.add_option("--sequences", options.sequences, "so many, spread evenly over the part")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str()
      ->group("Data");
  app.add_option("--sequence-length", options.sequence_length, "tokens of a sequence; default: as trained")
      ->type_name("N")
      ->check(whole_number(2))
      ->group("Data");
  app.add_option("--queries", options.queries, "sampled in each sequence, the same for all heads; 0: all")
      ->type_name("N")
      ->check(whole_number(0))
      ->capture_default_str()
      ->group("Data");
  app.add_option("--seed", options.seed, "fixes what is drawn")
      ->type_name("N")
      ->check(whole_number(0))
      ->capture_default_str()
      ->group("Data");
  app.add_option("--out", options.paths, "figure to write, .png or .svg; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("Output");
  app.add_flag("--json", options.json, "print the result as JSON")->disable_flag_override()->group("Output");
}

ProbedRun open_probed_run(const HeadAnalysisOptions& options, const ProgramOptions& program) {
  ProbedRun run;
  run.model_path = model_file(options.run, options.checkpoint);
  require<ConfigError>(!is_made_up(load_model_config(run.model_path).data.format), run.model_path.string(),
                       ": was trained on made-up data; heads of models of real data can be looked at");
  run.model = load_model(run.model_path);
  const ExperimentConfig& config = run.model->config();
  require<ConfigError>(!options.data.empty() || !config.data.path.empty(), run.model_path.string(),
                       ": names no data; give some with --data PATH");
  TrainingDisplay display(program.quiet);
  const OtherData other{.path = options.data, .vocabulary = options.vocabulary};
  const Dataset data(
      run_data_config(run.model_path, config, other),
      {.train_needed = is_own_data(other, config), .notes = [&](const std::string& line) { display.say(line); }});
  const ModelNotes notes = load_model_notes(run.model_path);
  require_tokens_of_run(run.model_path, data);
  fitted_to(config, data.facts());
  run.data_path = data.path();
  run.validity = validity_label(config);
  run.data_label = notes.data_label.empty() ? data.facts().label() : notes.data_label;
  run.precision = chosen_precision(options.precision, config);
  run.tokens = spread_sequences(data.part(options.split).tokens,
                                options.sequence_length > 0 ? options.sequence_length : config.train.sequence_length,
                                data.facts().record_length(), options.sequences);
  return run;
}

std::string run_title(const ProbedRun& run) {
  return run.model->config().name + " on " + run.data_path.filename().string();
}

std::string describe_model(const ProbedRun& run) {
  return run.model_path.string() + ", " + run.validity + (run.data_label.empty() ? "" : ", " + run.data_label);
}

std::string describe_sequences(const HeadAnalysisOptions& options, const ProbedRun& run, std::int64_t queries) {
  const std::int64_t sequences = run.tokens.size(0);
  return std::to_string(sequences) + (sequences == 1 ? " sequence of " : " sequences of ") +
         std::to_string(run.tokens.size(1)) + " tokens, " + std::to_string(queries) + " queries in each, " +
         options.split + " part of " + run.data_path.string();
}

}  // namespace routing
