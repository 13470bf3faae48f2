#include "analyze/analyze_options.h"
#include "inputs/run_model.h"
#include "lab/tables/recall_distance.h"
#include "routing/core/error.h"
#include "routing/model/weights.h"
#include "shell/engine.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace routing {
namespace {

RecallModel scored_model(const DistanceOptions& options, const std::string& run) {
  const std::filesystem::path path = model_file(run, options.checkpoint);
  Transformer model = load_model(path);
  const ExperimentConfig& config = model->config();
  require<ConfigError>(config.data.format == DataFormat::recall, run, ": was trained with data.format ",
                       to_string(config.data.format), ", but only models of recall have facts to remember");
  return measure_recall(*model,
                        {.part = options.split, .sequences = options.sequences, .length = options.sequence_length});
}

nlohmann::ordered_json as_json(const RecallModel& model, const std::string& run) {
  nlohmann::ordered_json object{{"run", run},
                                {"attention", model.name},
                                {"pairs_per_query", model.pairs.per_query},
                                {"accuracy", model.score.accuracy()},
                                {"chance", model.score.chance},
                                {"distances", nlohmann::ordered_json::array()}};
  for (const DistanceScore& bin : model.score.distances) {
    object["distances"].push_back({{"from", bin.from}, {"to", bin.to}, {"answers", bin.answers}, {"right", bin.right}});
  }
  return object;
}

}  // namespace

int run_analyze_distance(const DistanceOptions& options, const ProgramOptions& /*program*/) {
  for (const std::string& path : options.paths) figure_format(path);
  std::vector<RecallModel> models;
  std::map<std::string, int> times;
  for (const std::string& run : options.runs) {
    models.push_back(scored_model(options, run));
    // Two runs of one kind: the second is told apart by its number.
    if (const int before = times[models.back().name]++; before > 0) {
      models.back().name += " (" + std::to_string(before + 1) + ")";
    }
  }
  for (const std::string& path : options.paths) write_curves_figure(recall_figure(models), path);
  if (options.json) {
    for (std::size_t i = 0; i < models.size(); ++i) std::cout << as_json(models[i], options.runs[i]) << "\n";
    return kDone;
  }
  std::cout << recall_markdown(models);
  for (const std::string& path : options.paths) std::cout << path << "\n";
  return kDone;
}

}  // namespace routing
