#include "commands.h"
#include "convert/convert_options.h"
#include "shell/engine.h"
#include "shell/options.h"
#include "shell/usage_error.h"

#include <memory>

namespace routing {
namespace {

// Options that belong to one direction are not passed over in the other.
void refuse_what_does_not_belong(const ConvertOptions& options) {
  if (options.to == "routing") return;
  const auto refuse = [](const char* flag) {
    throw UsageError(std::string(flag) + " is for models that come in, but --to tensorflow writes one of ours",
                     "leave it out: the model knows its configuration");
  };
  if (options.from != "auto") refuse("--from");
  if (!options.preset.empty()) refuse("--preset");
  if (!options.config.empty()) refuse("--config");
  if (!options.settings.empty()) refuse("--set");
  if (!options.arguments.empty()) refuse("--arg");
  if (!options.arguments_file.empty()) refuse("--args");
  if (!options.entry.empty()) refuse("--entry");
}

}  // namespace

Command add_convert(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<ConvertOptions>();
  CLI::App* app = add_command(
      program, "convert",
      "Models of other programs: the authors' TensorFlow, lucidrains' PyTorch\n\n"
      "Reads a checkpoint of the authors' code (the files PREFIX.index and PREFIX.data-…) or a state_dict of\n"
      "RoutingTransformerLM saved by torch.save, and writes a folder that eval, generate and info open. Neither "
      "program\n"
      "is needed, and nothing of a pickle is run. --to tensorflow writes a model of ours as a checkpoint of the "
      "authors'.\n"
      "Every weight is used or the model is refused, with the parts that have no counterpart (docs/converting.md).",
      "routing convert model.ckpt-3530000 --preset pg19-code --out pg19");
  OptionGroup model(*app, "Model");
  model
      .add({"SOURCE", "prefix of a TensorFlow checkpoint, file of torch.save, or with --to a run or model of ours"},
           options->source)
      ->required();
  model.add({"--from FORMAT", "auto (by the files), tensorflow or pytorch"}, options->from,
            one_of({"auto", "tensorflow", "pytorch"}));
  model.add({"--to FORMAT", "routing or tensorflow"}, options->to, one_of({"routing", "tensorflow"}));
  model.add(kCheckpointOption, options->checkpoint);
  OptionGroup tensorflow(*app, "Configuration");
  tensorflow.add({"--preset NAME", "of a TensorFlow checkpoint: the experiment it was trained as, such as pg19-code"},
                 options->preset);
  tensorflow.add({"--config FILE", "TOML file with configuration keys"}, options->config);
  tensorflow.add(kSettingsOption, options->settings);
  OptionGroup pytorch(*app, "RoutingTransformerLM");
  pytorch.add({"--arg NAME=VALUE", "argument of the constructor that no tensor tells, such as causal=true; repeatable"},
              options->arguments);
  pytorch.add({"--args FILE", "JSON object of such arguments"}, options->arguments_file);
  pytorch.add({"--entry NAME", "of a dictionary with more in it: the entry with the state_dict"}, options->entry);
  OptionGroup output(*app, "Output");
  output
      .add({"--out PATH", "folder, or a file *.zip with it; with --to tensorflow the prefix of two files"},
           options->out)
      ->required();
  output.flag({"--force", "replace an earlier one"}, options->force);
  output.flag(kJsonFlag, options->json);
  return {app, [options, &program_options] {
            refuse_what_does_not_belong(*options);
            return engine(program_options).convert(*options, program_options);
          }};
}

}  // namespace routing
