#include "generate/generate_job.h"
#include "inputs/run_model.h"
#include "routing/core/error.h"
#include "shell/engine.h"

namespace routing {
int run_generate(const GenerateArguments& arguments, const ProgramOptions& program) {
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

}  // namespace routing
