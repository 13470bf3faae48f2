#include "analyze/head_analysis.h"

#include "lab/heads/spread_sequences.h"
#include "routing/model/weights.h"
#include "shell/run_model.h"

#include <memory>

namespace routing {
void add_head_analysis_options(CLI::App& app, HeadAnalysisOptions& options) {
  app.add_option("RUN", options.model.run, "whose heads to look at")->required()->group("Model");
  add_model_options(app, options.model);
  add_data_options(app, options.model);
  app.add_option("--sequences", options.sequences, "how many, spread evenly over the part")
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
  const RunModel loaded = load_run_model(options.model, "looking at heads");
  const std::unique_ptr<Dataset> data = open_run_data(options.model, loaded, program.quiet);
  const ExperimentConfig& config = loaded.model->config();
  const std::string learned_from = load_model_notes(loaded.path).data_label;
  const std::int64_t length = options.sequence_length > 0 ? options.sequence_length : config.train.sequence_length;
  return {.model_path = loaded.path,
          .data_path = data->path(),
          .model = loaded.model,
          .tokens = spread_sequences(
              data->part(options.model.split).tokens,
              {.length = length, .record_length = data->facts().record_length(), .count = options.sequences}),
          .validity = validity_label(config),
          .data_label = learned_from.empty() ? data->facts().label() : learned_from,
          .precision = chosen_precision(options.model.precision, config)};
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
         options.model.split + " part of " + run.data_path.string();
}

}  // namespace routing
