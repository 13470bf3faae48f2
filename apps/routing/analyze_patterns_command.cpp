#include "command_line.h"
#include "commands.h"
#include "routing/analysis/pattern_figure.h"
#include "routing/analysis/pattern_gallery.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

struct PatternsOptions {
  std::int64_t num_tokens = 64;
  std::uint64_t seed = 1;
  std::vector<std::string> paths;
  bool json = false;
};

void run(const PatternsOptions& options) {
  // Wrong names first: of several files either all are written or none.
  for (const std::string& path : options.paths) figure_format(path);
  const PatternFigure figure = pattern_gallery(options.num_tokens, options.seed);
  for (const std::string& path : options.paths) write_pattern_figure(figure, path);
  if (options.json) {
    std::cout << nlohmann::json{{"written", options.paths}, {"n", options.num_tokens}, {"seed", options.seed}} << "\n";
    return;
  }
  for (const std::string& path : options.paths) std::cout << path << "\n";
}

}  // namespace

Command add_analyze_patterns(CLI::App& analyze) {
  const auto options = std::make_shared<PatternsOptions>();
  CLI::App* app = analyze.add_subcommand(
      "patterns",
      "Draw which inputs each output reads, for every attention pattern\n\n"
      "The paper's Figure 1: one square a pattern, rows are outputs, columns are inputs, colours are groups.");
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
  app->add_flag("--json", options->json, "print the result as JSON")->disable_flag_override()->group("Output");
  app->footer("Example  routing analyze patterns --n 64 --out patterns.png --out patterns.svg\n" + exit_code_line());
  return {app, [options] {
            run(*options);
            return kDone;
          }};
}

}  // namespace routing
