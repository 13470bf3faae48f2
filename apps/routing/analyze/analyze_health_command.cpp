#include "analyze/analyze_options.h"
#include "commands.h"
#include "shell/engine.h"
#include "shell/options.h"
#include "shell/usage_error.h"

#include <memory>
#include <string>

namespace routing {

Command add_analyze_health(CLI::App& analyze, const ProgramOptions& program) {
  const auto options = std::make_shared<HealthOptions>();
  CLI::App* app = add_command(
      analyze, "health",
      "Occupancy, dead centroids, drift and memberships of routed heads\n\n"
      "What metrics.jsonl says of them over the steps, a verdict, and each head: as the checkpoint remembers it, or\n"
      "with --data or --split counted on held-out tokens, with the share that passes no threshold, the entropy of\n"
      "what moves centroids and the mean largest weight of attention. Unhealthy means dead centroids, a worst head\n"
      "with an entropy below 0.5, or thresholds that move by more than half of 1 / clusters deviations per step.",
      "routing analyze health runs/first --split valid --out health.png");
  OptionGroup model(*app, "Model");
  model.add({"RUN", "folders of runs"}, options->runs)->required();
  options->model.checkpoint = "last";  // as far as the curves go
  add_model_options(*app, options->model);
  add_data_options(*app, options->model);
  OptionGroup data(*app, "Data");
  data.add({"--limit-tokens N", "only the first N; default: as in training"}, options->limit_tokens, whole_number(1));
  OptionGroup output(*app, "Output");
  output.add(kFigureOption, options->paths);
  output.flag({"--json", "print an object per run"}, options->json);
  return {app, [options, app, &program] {
            options->evaluate = app->count("--data") > 0 || app->count("--split") > 0;
            for (const std::string name : {"--limit-tokens", "--vocabulary", "--precision"}) {
              if (options->evaluate || app->count(name) == 0) continue;
              throw UsageError(name + " is for heads on data, but neither --data nor --split asks for that",
                               "add --split valid, or leave " + name + " out");
            }
            return engine(program).analyze_health(*options, program);
          }};
}

}  // namespace routing
