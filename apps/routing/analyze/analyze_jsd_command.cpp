#include "analyze/analyze_options.h"
#include "commands.h"
#include "inputs/run_files.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_analyze_jsd(CLI::App& analyze, const ProgramOptions& program) {
  const auto options = std::make_shared<JsdOptions>();
  CLI::App* app = add_command(analyze, "jsd",
                              "How differently the heads of a model attend: Jensen-Shannon divergences\n\n"
                              "The paper's table of divergences between local and routing heads, layer by "
                              "layer, at the true positions of keys;\n"
                              "the figure shows every head against every other one.",
                              "routing analyze jsd runs/first --out heads.png");
  add_head_analysis_options(*app, options->common);
  OptionGroup data(*app, "Data");
  data.add({"--draws N", "of a random pair of heads and a random sequence"}, options->draws, whole_number(1, 1000000));
  OptionGroup(*app, "Output").flag({"--published", "the paper's figures beside them"}, options->published);
  return {app, [options, &program] {
            model_file(options->common.model.run, options->common.model.checkpoint);  // says at once what is missing
            return engine(program).analyze_jsd(*options, program);
          }};
}

}  // namespace routing
