#include "commands.h"
#include "lab/figures/model_patterns.h"
#include "lab/figures/pattern_figure.h"
#include "lab/figures/pattern_gallery.h"
#include "shell/command_line.h"
#include "shell/options.h"
#include "shell/run_data.h"
#include "shell/run_model.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace routing {
namespace {

constexpr std::int64_t kGalleryTokens = 64;

struct PatternsOptions {
  RunDataOptions model;  // only with a run
  std::int64_t layer = -1;
  std::string head;
  std::int64_t num_tokens = 0;  // 0 for as many as show what there is to see
  std::uint64_t seed = 1;
  std::vector<std::string> paths;
  bool json = false;
};

// The plans of a trained model on a stretch of its data.
PatternFigure figure_of_run(PatternsOptions& options, bool quiet) {
  std::error_code ignored;
  if (!std::filesystem::exists(options.model.run, ignored)) {
    throw UsageError("analyze patterns: unexpected argument '" + options.model.run + "': there is no such run",
                     "routing analyze patterns --help  lists the options");
  }
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

void run(PatternsOptions& options, bool quiet) {
  // Wrong names first: of several files either all are written or none.
  for (const std::string& path : options.paths) figure_format(path);
  const bool of_run = !options.model.run.empty();
  if (!of_run && options.num_tokens == 0) options.num_tokens = kGalleryTokens;
  const PatternFigure figure =
      of_run ? figure_of_run(options, quiet) : pattern_gallery(options.num_tokens, options.seed);
  for (const std::string& path : options.paths) write_pattern_figure(figure, path);
  if (options.json) {
    nlohmann::json object{{"written", options.paths}, {"n", options.num_tokens}};
    if (of_run) {
      object.update({{"run", options.model.run}, {"split", options.model.split}, {"offset", options.model.offset}});
    } else {
      object["seed"] = options.seed;
    }
    std::cout << object << "\n";
    return;
  }
  for (const std::string& path : options.paths) std::cout << path << "\n";
}

// A number, or "all".
CLI::Validator head_or_all() {
  const CLI::Validator number = whole_number(0);
  const auto complaint = [number](std::string& text) { return text == "all" ? std::string() : number(text); };
  return {complaint, "", "head"};
}

void add_run_options(CLI::App& app, PatternsOptions& options) {
  OptionGroup model(app, "Model");
  model.add({"RUN", "draw the plans of this trained model instead"}, options.model.run);
  add_model_options(app, options.model);
  model.add({"--layer L", "only this layer, from 0; default: all"}, options.layer, whole_number(0));
  model.add({"--head H", "this head of each layer, or all; default: the first of each group"}, options.head,
            head_or_all());
  add_data_options(app, options.model);
  OptionGroup data(app, "Data");
  data.add({"--offset N", "first token of the stretch; of images, the number of the image"}, options.model.offset,
           whole_number(0));
}

// Options that say something only of a trained model.
void refuse_without_run(const CLI::App& app, const PatternsOptions& options) {
  if (!options.model.run.empty()) return;
  for (const char* name :
       {"--checkpoint", "--precision", "--layer", "--head", "--data", "--vocabulary", "--split", "--offset"}) {
    if (app.count(name) > 0) {
      throw UsageError("analyze patterns: " + std::string(name) + " needs a RUN",
                       "without one the figure shows every pattern on made-up tokens");
    }
  }
}

}  // namespace

Command add_analyze_patterns(CLI::App& analyze, const ProgramOptions& program) {
  const auto options = std::make_shared<PatternsOptions>();
  CLI::App* app = add_command(
      analyze, "patterns",
      "Draw which inputs each output reads, for every attention pattern\n\n"
      "The paper's Figure 1: one square per pattern, rows are outputs, columns are inputs, colours are groups. With a\n"
      "RUN, one square per head: what that trained model reads on a stretch of its data.",
      "routing analyze patterns --n 64 --out patterns.png --out patterns.svg");
  OptionGroup figure(*app, "Figure");
  figure.add({"--out FILE", "file to write, .png or .svg; may be repeated"}, options->paths)->required();
  figure
      .add({"--n N", "tokens; of a RUN, twice its largest window unless given"}, options->num_tokens, whole_number(1))
      ->default_str(std::to_string(kGalleryTokens));
  figure.add({"--seed N", "fixes the random and LSH patterns"}, options->seed, whole_number(0));
  add_run_options(*app, *options);
  OptionGroup(*app, "Output").flag(kJsonFlag, options->json);
  return {app, [options, app, &program] {
            refuse_without_run(*app, *options);
            run(*options, program.quiet);
            return kDone;
          }};
}

}  // namespace routing
