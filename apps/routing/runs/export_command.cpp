#include "commands.h"
#include "runs/export_options.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_export(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* app = add_command(
      program, "export",
      "A trained model as one folder or file, for a colleague\n\n"
      "Weights without the state of the optimiser, vocabulary, configuration, the log, a model card (README.md) and\n"
      "checksums. It names no path of this machine and works anywhere: routing generate FOLDER, eval, analyze.",
      "routing export runs/first --out first.zip");
  OptionGroup model(*app, "Model");
  model.add({"RUN", "folder of a run or checkpoint, or a model.safetensors"}, options->run)->required();
  model.add(kCheckpointOption, options->checkpoint);
  OptionGroup output(*app, "Output");
  output.add({"--out PATH", "folder, or a file *.zip with it; default: the name of the run and -export"}, options->out);
  output.flag({"--force", "replace an earlier export"}, options->force);
  output.flag(kJsonFlag, options->json);
  return {app, [options, &program_options] { return export_run(*options, program_options); }};
}

}  // namespace routing
