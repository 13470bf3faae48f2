#include "commands.h"
#include "lab/figures/model_patterns.h"
#include "lab/figures/pattern_figure.h"
#include "lab/figures/pattern_gallery.h"
#include "shell/command_line.h"
#include "shell/run_data.h"
#include "shell/run_model.h"

#include <nlohmann/json.hpp>

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

struct PatternsOptions {
  RunDataOptions model;  // only with a run
  std::int64_t layer = -1;
  std::string head;
  std::int64_t num_tokens = 64;
  std::uint64_t seed = 1;
  std::vector<std::string> paths;
  bool json = false;
};

// The plans of a trained model on a stretch of its data.
PatternFigure figure_of_run(const PatternsOptions& options, bool quiet) {
  std::error_code ignored;
  if (!std::filesystem::exists(options.model.run, ignored)) {
    throw UsageError("analyze patterns: unexpected argument '" + options.model.run + "': there is no such run",
                     "routing analyze patterns --help  lists the options");
  }
  RunModel model = load_run_model(options.model, "analyze patterns");
  const std::unique_ptr<Dataset> data = open_run_data(options.model, model, quiet);
  const ExperimentConfig& config = model.model->config();
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

void run(const PatternsOptions& options, bool quiet) {
  // Wrong names first: of several files either all are written or none.
  for (const std::string& path : options.paths) figure_format(path);
  const bool of_run = !options.model.run.empty();
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
  app.add_option("RUN", options.model.run, "draw the plans of this trained model instead")->group("Model");
  add_model_options(app, options.model);
  app.add_option("--layer", options.layer, "only this layer, from 0; default: all")
      ->type_name("L")
      ->check(whole_number(0))
      ->group("Model");
  app.add_option("--head", options.head, "this head of each layer, or all; default: the first of each group")
      ->type_name("H")
      ->check(head_or_all())
      ->group("Model");
  add_data_options(app, options.model);
  app.add_option("--offset", options.model.offset, "first token of the stretch; of images, the number of the image")
      ->type_name("N")
      ->check(whole_number(0))
      ->capture_default_str()
      ->group("Data");
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
  CLI::App* app = analyze.add_subcommand(
      "patterns",
      "Draw which inputs each output reads, for every attention pattern\n\n"
      "The paper's Figure 1: one square per pattern, rows are outputs, columns are inputs, colours are groups. With a\n"
      "RUN, one square per head: what that trained model reads on a stretch of its data.");
  app->add_option("--out", options->paths, "file to write, .png or .svg; may be repeated")
      ->type_name("FILE")
      ->required()
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("Figure");
  app->add_option("--n", options->num_tokens, "tokens of the sequence")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str()
      ->group("Figure");
  app->add_option("--seed", options->seed, "fixes the random and LSH patterns")
      ->type_name("N")
      ->check(whole_number(0))
      ->capture_default_str()
      ->group("Figure");
  add_run_options(*app, *options);
  app->add_flag("--json", options->json, "print the result as JSON")->disable_flag_override()->group("Output");
  app->footer("Example  routing analyze patterns --n 64 --out patterns.png --out patterns.svg\n" + exit_code_line());
  return {app, [options, app, &program] {
            refuse_without_run(*app, *options);
            run(*options, program.quiet);
            return kDone;
          }};
}

}  // namespace routing
