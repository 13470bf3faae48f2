#include "commands.h"
#include "lab/tables/recall_distance.h"
#include "routing/core/error.h"
#include "routing/model/weights.h"
#include "shell/options.h"
#include "shell/run_model.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

struct DistanceOptions {
  std::vector<std::string> runs;
  std::vector<std::string> paths;
  std::string checkpoint = "best";
  std::string split = "test";
  std::int64_t sequences = 64;
  std::int64_t sequence_length = 0;
  bool json = false;
};

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

void run(const DistanceOptions& options) {
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
    return;
  }
  std::cout << recall_markdown(models);
  for (const std::string& path : options.paths) std::cout << path << "\n";
}

}  // namespace

Command add_analyze_distance(CLI::App& analyze, const ProgramOptions& /*program*/) {
  const auto options = std::make_shared<DistanceOptions>();
  CLI::App* app = add_command(
      analyze, "distance",
      "Compare how far back models of the recall task remember\n\n"
      "Right answers by the distance of the fact, and the keys that a content head reads for a query. RUN is a run\n"
      "trained with data.format=recall, such as the preset tiny-recall.",
      "routing analyze distance runs/recall-full runs/recall-local --out distance.png");
  OptionGroup models(*app, "Models");
  models.add({"RUN", "folders of runs, checkpoints or model files"}, options->runs)->required();
  models.add({"--checkpoint TEXT", "best, last or a step"}, options->checkpoint);
  OptionGroup data(*app, "Data");
  data.add({"--split TEXT", "part of the endless data: train, valid or test"}, options->split, a_split());
  data.add({"--sequences N", "sequences to score"}, options->sequences, whole_number(1));
  data.add({"--sequence-length N", "tokens of a sequence; 0: as trained"}, options->sequence_length, whole_number(0));
  OptionGroup output(*app, "Output");
  output.add(kFigureOption, options->paths);
  output.flag({"--json", "print one JSON object per model"}, options->json);
  return {app, [options] {
            run(*options);
            return kDone;
          }};
}

}  // namespace routing
