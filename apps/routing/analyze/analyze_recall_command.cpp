#include "analyze/analyze_options.h"
#include "commands.h"
#include "inputs/run_files.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_analyze_recall(CLI::App& analyze, const ProgramOptions& program) {
  const auto options = std::make_shared<HeadAnalysisOptions>();
  options->queries = 64;
  CLI::App* app = add_command(analyze, "recall",
                              "How much of dense attention the plans of a model's heads keep\n\n"
                              "For sampled queries: the share of softmax mass and of the largest inner "
                              "products that the keys of the plan hold,\n"
                              "beside as many recent and as many random keys.",
                              "routing analyze recall runs/first --out recall.png");
  add_head_analysis_options(*app, *options);
  return {app, [options, &program] {
            model_file(options->model.run, options->model.checkpoint);  // says at once what is missing
            return engine(program).analyze_recall(*options, program);
          }};
}

}  // namespace routing
