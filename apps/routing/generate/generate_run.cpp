#include "generate/generate_job.h"
#include "inputs/run_model.h"
#include "ranks/rank_launcher.h"
#include "ranks/rank_process.h"
#include "routing/core/error.h"
#include "routing/distributed/state_check.h"
#include "shell/engine.h"

#include <optional>

namespace routing {
namespace {

int generate_here(const GenerateArguments& arguments, const ProgramOptions& program, RankGroup* ranks) {
  validate(arguments.sampling);
  const std::filesystem::path path = model_file(arguments.run, arguments.checkpoint);
  // Before the model, which may be large: a prompt that cannot be read shows at once.
  Prompt prompt = read_prompt(arguments);
  const GenerateJob job{.arguments = arguments,
                        .path = path,
                        .model = load_sequence_model(path),
                        .notes = load_model_notes(path),
                        .quiet = program.quiet,
                        .ranks = ranks};
  if (ranks != nullptr) {
    require<ConfigError>(!job.makes_images(), path.string(),
                         ": holds a model of images, which ranks do not read together; "
                         "leave out --ranks");
    check_same_model(*ranks, *job.model, 0);
    ranks->status().enter(RankPhase::computing);
  }
  try {
    return job.makes_images() ? generate_images(job) : generate_text(job, std::move(prompt));
  } catch (const Interrupted&) {
    return kInterrupted;
  }
}

}  // namespace

int run_generate(const GenerateArguments& arguments, const ProgramOptions& program) {
  if (arguments.ranks.count == 1) return generate_here(arguments, program, nullptr);
  const std::optional<RankPlace> place = is_launched() ? rank_place() : std::nullopt;
  if (!place) {
    return launch_ranks({.ranks = arguments.ranks.count,
                         .timeout = arguments.ranks.timeout(),
                         .arguments = program.arguments,
                         .quiet = program.quiet,
                         .speaker = arguments.ranks.count - 1});
  }
  return run_as_rank(*place, {.timeout = arguments.ranks.timeout(), .arguments = program.arguments},
                     [&](const std::shared_ptr<RankGroup>& group, int /*on_machine*/) {
                       return generate_here(arguments, program, group.get());
                     });
}

}  // namespace routing
