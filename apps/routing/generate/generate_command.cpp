#include "commands.h"
#include "generate/generate_job.h"
#include "routing/core/error.h"
#include "shell/options.h"
#include "shell/run_model.h"

#include <memory>

namespace routing {
namespace {

int run(const GenerateArguments& arguments, const ProgramOptions& program) {
  validate(arguments.sampling);
  const std::filesystem::path path = model_file(arguments.run, arguments.checkpoint);
  // Before the model, which may be large: a prompt that cannot be read shows at once.
  Prompt prompt = read_prompt(arguments);
  const GenerateJob job{.arguments = arguments,
                        .path = path,
                        .model = load_sequence_model(path),
                        .notes = load_model_notes(path),
                        .quiet = program.quiet};
  try {
    return job.makes_images() ? generate_images(job) : generate_text(job, std::move(prompt));
  } catch (const Interrupted&) {
    return kInterrupted;
  }
}

}  // namespace

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
            return run(*arguments, program_options);
          }};
}

}  // namespace routing
