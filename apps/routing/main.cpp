// The command line: the only place that prints or exits.
#include "commands.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/ops/tensor_memory.h"
#include "shell/command_line.h"
#include "version.h"

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace routing {

std::string exit_code_line() {
  return "Exit     0 done   1 failed while running   2 wrong usage or configuration   130 interrupted, state saved";
}

std::vector<Command> add_commands(CLI::App& program, const ProgramOptions& options) {
  std::vector<Command> commands{add_quickstart(program, options), add_train(program, options),
                                add_eval(program, options), add_generate(program, options)};
  commands.push_back(add_audit(program, options));
  CLI::App* analyze =
      program.add_subcommand("analyze", "Look into models: what heads read, how clusters fare, what leaks");
  analyze->footer("Example  routing analyze patterns --out patterns.png\n" + exit_code_line());
  commands.push_back(add_analyze_patterns(*analyze, options));
  commands.push_back(add_analyze_attention(*analyze, options));
  commands.push_back(add_analyze_health(*analyze, options));
  commands.push_back(add_analyze_jsd(*analyze, options));
  commands.push_back(add_analyze_recall(*analyze, options));
  commands.push_back(add_analyze_leak(*analyze, options));
  commands.push_back(add_analyze_distance(*analyze));
  commands.push_back(add_table(program, options));
  for (Command& command : add_bench(program, options)) commands.push_back(std::move(command));
  for (Command& command : add_data(program, options)) commands.push_back(std::move(command));
  commands.push_back(add_presets(program));
  commands.push_back(add_info(program, options));
  commands.push_back(add_doctor(program, options));
  return commands;
}

namespace {

// More than any machine has cores, and few enough for the system to start them.
constexpr int kMostThreads = 4096;

void add_program_options(CLI::App& program, ProgramOptions& options) {
  program.formatter(std::make_shared<HelpFormatter>());
  program.set_help_flag("-h,--help", "print this help and stop");
  program.set_version_flag("--version", "routing " + program_version(), "print the version and stop");
  program.add_option("--threads", options.threads, "threads of this process; default: its cores")
      ->type_name("N")
      ->check(whole_number(1, kMostThreads))
      ->capture_default_str()
      ->group("Program");
  program.add_flag("--quiet", options.quiet, "print results and errors only")
      ->disable_flag_override()
      ->group("Program");
  program.footer("Example  routing train --preset tiny-enwik8 --data enwik8 --out runs/first\n" + exit_code_line());
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

void set_threads(const ProgramOptions& options) {
  set_num_threads(options.threads);
  // What costs time runs in our own loops. Threads of libtorch's would gain nothing more, and wait for each other
  // spinning: one busy neighbour on the machine would make training many times slower.
  at::set_num_threads(1);
  reuse_tensor_memory();
}

int run_given_command(CLI::App& program, const std::vector<Command>& commands) {
  const CLI::App& given = given_command(program);
  for (const Command& command : commands) {
    if (command.app != &given) continue;
    return command.run();
  }
  throw UsageError("a command is missing after '" + full_name(given) + "'",
                   full_name(given) + " --help  lists what there is");
}

int report(const std::string& message, const std::string& hint, int exit_code) {
  std::cerr << "routing: error: " << message << "\n";
  if (!hint.empty()) std::cerr << "  hint: " << hint << "\n";
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
  try {
    program.parse(argc, argv);
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
  set_threads(options);
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
  } catch (const c10::Error& error) {
    // Its what() has many lines; the first says it.
    const std::string message = error.what_without_backtrace();
    return report(message.substr(0, message.find('\n')), "", kFailed);
  } catch (const std::bad_alloc&) {
    return report(
        "not enough memory; lower train.batch_size, train.sequence_length or the sizes of the model; of generate, "
        "-n, --batch-size or the prompt",
        "", kFailed);
  } catch (const std::exception& error) {
    return report(error.what(), "", kFailed);
  }
}
