#include "analyze/analyze_options.h"
#include "commands.h"
#include "shell/engine.h"
#include "shell/options.h"
#include "shell/usage_error.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

namespace routing {
namespace {

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
  model.add({"--head H", "this head of each layer, or all; default: the first of each group", {"all"}}, options.head,
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

void refuse_missing_run(const PatternsOptions& options) {
  std::error_code ignored;
  if (!options.model.run.empty() && !std::filesystem::exists(options.model.run, ignored)) {
    throw UsageError("analyze patterns: unexpected argument '" + options.model.run + "': there is no such run",
                     "routing analyze patterns --help  lists the options");
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
            refuse_missing_run(*options);
            return engine(program).analyze_patterns(*options, program);
          }};
}

}  // namespace routing
