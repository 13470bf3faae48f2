#include "analyze/analyze_options.h"
#include "inputs/run_data.h"
#include "inputs/run_model.h"
#include "lab/figures/model_patterns.h"
#include "lab/figures/pattern_figure.h"
#include "lab/figures/pattern_gallery.h"
#include "shell/engine.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

// The plans of a trained model on a stretch of its data.
PatternFigure figure_of_run(PatternsOptions& options, bool quiet) {
  RunModel model = load_run_model(options.model, "analyze patterns");
  const std::unique_ptr<Dataset> data = open_run_data(options.model, model, quiet);
  const ExperimentConfig& config = model.model->config();
  if (options.num_tokens == 0) {
    options.num_tokens = std::min(usual_pattern_tokens(config), tokens_from(*data, options.model));
  }
  ModelPatternsOptions which{.title = "Which keys does each query read? " + config.name + ", " +
                                      std::to_string(options.num_tokens) + " tokens of " +
                                      data->path().filename().string() + ", " + options.model.split + " part",
                             .all_heads = options.head == "all",
                             .precision = chosen_precision(options.model.precision, config)};
  if (options.layer >= 0) which.layer = options.layer;
  if (!options.head.empty() && !which.all_heads) {
    std::int64_t head = 0;
    std::from_chars(options.head.data(), options.head.data() + options.head.size(), head);
    which.head = head;
  }
  return model_patterns(*model.model, stretch_of(*data, options.model, options.num_tokens), which);
}

}  // namespace

int run_analyze_patterns(const PatternsOptions& given, const ProgramOptions& program) {
  PatternsOptions options = given;
  // Wrong names first: of several files either all are written or none.
  for (const std::string& path : options.paths) figure_format(path);
  const bool of_run = !options.model.run.empty();
  if (!of_run && options.num_tokens == 0) options.num_tokens = kGalleryTokens;
  const PatternFigure figure =
      of_run ? figure_of_run(options, program.quiet) : pattern_gallery(options.num_tokens, options.seed);
  for (const std::string& path : options.paths) write_pattern_figure(figure, path);
  if (options.json) {
    nlohmann::json object{{"written", options.paths}, {"n", options.num_tokens}};
    if (of_run) {
      object.update({{"run", options.model.run}, {"split", options.model.split}, {"offset", options.model.offset}});
    } else {
      object["seed"] = options.seed;
    }
    std::cout << object << "\n";
    return kDone;
  }
  for (const std::string& path : options.paths) std::cout << path << "\n";
  return kDone;
}

}  // namespace routing
