#include "commands.h"
#include "help/completion_scripts.h"
#include "shell/options.h"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace routing {

Command add_completion(CLI::App& program, const ProgramOptions& /*options*/) {
  const auto shell = std::make_shared<std::string>();
  std::vector<std::string> shells;
  for (const auto& [name, script] : completion_scripts()) shells.push_back(name);
  CLI::App* app =
      add_command(program, "completion",
                  "Print what teaches a shell to complete commands, options, presets, keys and runs\n\n"
                  "bash:  routing completion bash > ~/.local/share/bash-completion/completions/routing\n"
                  "zsh:   routing completion zsh > FOLDER/_routing, for a FOLDER of $fpath, before compinit\n"
                  "fish:  routing completion fish > ~/.config/fish/completions/routing.fish\n\n"
                  "cmake --install and the Debian package put them in place.",
                  "source <(routing completion bash)");
  OptionGroup(*app, "Options").add({"SHELL", "bash, zsh or fish"}, *shell, one_of(shells))->required();
  return {app, [shell] {
            for (const auto& [name, script] : completion_scripts()) {
              if (name == *shell) std::cout << script;
            }
            return kDone;
          }};
}

}  // namespace routing
