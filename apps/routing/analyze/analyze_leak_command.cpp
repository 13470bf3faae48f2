#include "analyze/analyze_options.h"
#include "commands.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {
namespace {

void add_sampling_options(CLI::App& app, LeakOptions& options) {
  OptionGroup sampling(app, "Sampling");
  sampling.add({"--windows N", "windows to sample, of the length of training"}, options.windows, whole_number(2));
  sampling.add({"--positions N", "positions in each, spread over it; each costs up to two passes"}, options.positions,
               whole_number(1));
  sampling.add({"--seed N", "fixes the sampled places"}, options.seed, whole_number(0));
  sampling.add({"--checks N", "samples to compare where a pattern promises equal bits"}, options.checks,
               whole_number(1));
  sampling.flag({"--check-all", "compare all of them"}, options.check_all);
}

}  // namespace

Command add_analyze_leak(CLI::App& analyze, const ProgramOptions& program_options) {
  const auto options = std::make_shared<LeakOptions>();
  CLI::App* app = add_command(
      analyze, "leak",
      "Measure what a likelihood owes to the future\n\n"
      "Scores sampled tokens with their real future, with another one in its place, and with none. RUNs are trained\n"
      "alike except for their selection; several seeds of one selection are averaged.",
      "routing analyze leak runs/balanced runs/nearest runs/local --out leak.png");
  OptionGroup model(*app, "Model");
  model.add({"RUN", "folders of runs, or model.safetensors files"}, options->runs)->required();
  model.add({"--checkpoint WHICH", "which checkpoint of the runs: best, last, or a step", {"best", "last"}},
            options->checkpoint);
  model.add(kPrecisionOption, options->precision);
  OptionGroup data(*app, "Data");
  data.add_paths({"--data PATH", "file or folder; may be repeated for texts; default: what the models were trained on"},
                 options->data);
  data.add(kSplitOption, options->split, a_split());
  add_sampling_options(*app, *options);
  OptionGroup output(*app, "Output");
  output.add({"--out FILE", "file to write: .png, .svg, .md, .csv or .json; may be repeated"}, options->paths);
  output.flag(kJsonFlag, options->json);
  return {app, [options, &program_options] { return engine(program_options).analyze_leak(*options, program_options); }};
}

}  // namespace routing
