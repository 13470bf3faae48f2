#include "analyze/head_analysis.h"

#include "inputs/run_model.h"
#include "lab/heads/spread_sequences.h"
#include "routing/model/weights.h"

#include <memory>

namespace routing {

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
