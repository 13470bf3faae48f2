#include "commands.h"
#include "generate/generate_options.h"
#include "inputs/run_files.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_generate(CLI::App& program, const ProgramOptions& program_options) {
  const auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* app =
      add_command(program, "generate",
                  "Sample text or images from a trained model\n\n"
                  "Text goes to standard output as it comes; speed goes to standard error. Models of images "
                  "write PNG files and one "
                  "sheet.\n"
                  "RUN is the folder of a run, of one of its checkpoints, or a model.safetensors.",
                  "routing generate runs/first --prompt \"Once upon a time\" -n 500");
  add_generate_options(*app, *arguments);
  return {app, [arguments, app, &program_options] {
            finish_generate_options(*app, *arguments);
            model_file(arguments->run, arguments->checkpoint);  // says at once what is missing
            return engine(program_options).generate(*arguments, program_options);
          }};
}

}  // namespace routing
