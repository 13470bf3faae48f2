// The command line: the only place that prints or exits.
#include "commands.h"
#include "help/completion.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "shell/command_line.h"
#include "shell/help_text.h"
#include "shell/option_names.h"
#include "shell/options.h"
#include "shell/output.h"
#include "version.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

// In the order of the help.
std::vector<Command> add_commands(CLI::App& program, const ProgramOptions& options) {
  std::vector<Command> commands;
  const auto add = [&](CLI::App& parent, std::initializer_list<AddCommand*> all) {
    for (AddCommand* const each : all) commands.push_back(each(parent, options));
  };
  add(program,
      {add_quickstart, add_train, add_eval, add_generate, add_serve, add_audit, add_runs, add_export, add_convert});
  add(*add_command(program, "analyze",
                   "Look into models: how they learned, what heads read, how clusters fare, what leaks",
                   "routing analyze patterns --out patterns.png"),
      {add_analyze_curves, add_analyze_spans, add_analyze_patterns, add_analyze_attention, add_analyze_health,
       add_analyze_jsd, add_analyze_recall, add_analyze_leak, add_analyze_distance});
  add(program, {add_table});
  add(*add_command(program, "bench",
                   "Measure speed and memory\n\n"
                   "Cases run in turns; rows give medians. docs/performance.md explains every column.",
                   "routing bench attention --pattern local,threshold"),
      {add_bench_attention, add_bench_train, add_bench_scaling, add_bench_layers, add_bench_decode,
       add_bench_distributed, add_bench_long});
  add(*add_command(program, "data",
                   "Look at data sets and prepare them\n\n"
                   "enwik8, WikiText-103 and -2, PG-19, CIFAR-10, ImageNet-64, any text, any folder of images. "
                   "docs/data.md describes\ntheir layouts.",
                   "routing data info cifar-10-batches-bin"),
      {add_data_info, add_data_prepare, add_data_tokenizer});
  add(program, {add_presets, add_info, add_doctor, add_completion, add_man});
  return commands;
}

// Asks what may follow a line that is being typed: `routing complete train --pre`. In no help, because it is the
// scripts of shells that ask.
constexpr const char* kCompleteCommand = "complete";

// More than any machine has cores, and few enough for the system to start them.
constexpr int kMostThreads = 4096;

void add_program_options(CLI::App& program, ProgramOptions& options) {
  program.formatter(std::make_shared<HelpFormatter>());
  program.set_help_flag("-h,--help", "print this help and stop");
  program.set_version_flag("--version", "routing " + program_version(), "print the version and stop");
  OptionGroup program_group(program, "Program");
  program_group.add({"--threads N", "threads of this process; default: its cores"}, options.threads,
                    whole_number(1, kMostThreads));
  program_group.flag({"--quiet", "print results and errors only"}, options.quiet);
  program.footer(help_footer("routing train --preset tiny-enwik8 --data enwik8 --out runs/first"));
  // Unknown arguments are collected first and refused by us, with the nearest name. The subcommands inherit both.
  program.allow_extras();
  program.fallthrough();
}

// Ranks on one machine share its cores; torchrun and our own --ranks say how many there are.
int cores_of_this_process() {
  const char* const text = std::getenv("RANK") == nullptr ? nullptr : std::getenv("LOCAL_WORLD_SIZE");
  const int ranks = text == nullptr ? 1 : std::max(1, std::atoi(text));
  return std::max(1, available_cores() / ranks);
}

int run_given_command(CLI::App& program, const std::vector<Command>& commands) {
  const CLI::App& given = given_command(program);
  for (const Command& command : commands) {
    if (command.app != &given) continue;
    return command.run();
  }
  throw UsageError("a command is missing after '" + full_name(given) + "'", list_help_hint(given));
}

int report(const std::string& message, const std::string& hint, int exit_code) {
  std::cerr << "routing: error: " << harmless_lines(with_flags(message)) << "\n";
  if (!hint.empty()) std::cerr << "  hint: " << harmless_lines(hint) << "\n";
  return exit_code;
}

int run_program(int argc, char** argv) {
  ProgramOptions options;
  options.threads = cores_of_this_process();
  options.arguments.assign(argv, argv + argc);
  CLI::App program("Routing Transformer: content-based sparse attention for long sequences", "routing");
  add_program_options(program, options);
  const std::vector<Command> commands = add_commands(program, options);
  if (argc == 1) {
    std::cerr << short_help(program);
    return kWrongUsage;
  }
  if (options.arguments[1] == kCompleteCommand) {
    // Words of another line, which CLI11 would take for its own.
    std::cout << to_text(complete(program, {options.arguments.begin() + 2, options.arguments.end()}));
    return kDone;
  }
  // `routing help train`, as git and cargo have it. CLI11 takes words from the last to the first.
  std::vector<std::string> words(options.arguments.rbegin(), options.arguments.rend() - 1);
  if (words.back() == "help") {
    words.pop_back();
    words.insert(words.begin(), "--help");
  }
  try {
    program.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    const CLI::App& given = given_command(program);
    std::cout << given.get_formatter()->make_help(&given, "", CLI::AppFormatMode::Normal);
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << "\n";
    return kDone;
  } catch (const CLI::ParseError& error) {
    throw explain(error, program);
  }
  refuse_unknown_arguments(program);
  set_num_threads(options.threads);
  return run_given_command(program, commands);
}

}  // namespace
}  // namespace routing

int main(int argc, char** argv) {
  using namespace routing;
  try {
    const int exit_code = run_program(argc, argv);
    // A full disk behind a redirection shows only here.
    if (!std::cout.flush()) return report("the result could not be written to standard output", "", kFailed);
    return exit_code;
  } catch (const UsageError& error) {
    return report(error.what(), error.hint(), kWrongUsage);
  } catch (const ConfigError& error) {
    return report(error.what(), "", kWrongUsage);
  } catch (const std::bad_alloc&) {
    return report(
        "not enough memory; lower train.batch_size, train.sequence_length or the sizes of the model; of generate, "
        "-n, --batch-size or the prompt",
        "", kFailed);
  } catch (const std::exception& error) {
    return report(error.what(), "", kFailed);
  }
}
