// The commands of the program. Each adds itself to the command line and says what to run when it is chosen.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace routing {

// Options that stand before or after any command.
struct ProgramOptions {
  int threads = 1;
  bool quiet = false;
  std::vector<std::string> arguments = {};  // as the program was called, its own name first
};

// What the program's exit codes mean; 1 and 2 are what exceptions become.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kInterrupted = 130;

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // returns the exit code
};

// The line at the end of every help text.
std::string exit_code_line();

// `options` is filled before a command runs and outlives it.
std::vector<Command> add_commands(CLI::App& program, const ProgramOptions& options);

std::vector<Command> add_data(CLI::App& program, const ProgramOptions& options);
Command add_analyze_distance(CLI::App& analyze);
Command add_analyze_leak(CLI::App& analyze, const ProgramOptions& program_options);
Command add_analyze_jsd(CLI::App& analyze, const ProgramOptions& program);
Command add_analyze_recall(CLI::App& analyze, const ProgramOptions& program);
Command add_analyze_patterns(CLI::App& analyze, const ProgramOptions& options);
Command add_analyze_attention(CLI::App& analyze, const ProgramOptions& options);
Command add_analyze_health(CLI::App& analyze, const ProgramOptions& options);
std::vector<Command> add_bench(CLI::App& program, const ProgramOptions& options);
Command add_bench_attention(CLI::App& bench_app, const ProgramOptions& program);
Command add_bench_train(CLI::App& bench_app, const ProgramOptions& program);
Command add_bench_scaling(CLI::App& bench_app, const ProgramOptions& program);
Command add_bench_distributed(CLI::App& bench, const ProgramOptions& program);
Command add_bench_decode(CLI::App& bench_app, const ProgramOptions& program);
Command add_bench_layers(CLI::App& bench_app, const ProgramOptions& program);
Command add_presets(CLI::App& program);
Command add_info(CLI::App& program, const ProgramOptions& options);
Command add_doctor(CLI::App& program, const ProgramOptions& options);
Command add_train(CLI::App& program, const ProgramOptions& options);
Command add_eval(CLI::App& program, const ProgramOptions& options);
Command add_audit(CLI::App& program, const ProgramOptions& options);
Command add_generate(CLI::App& program, const ProgramOptions& options);
Command add_table(CLI::App& program, const ProgramOptions& options);
Command add_quickstart(CLI::App& program, const ProgramOptions& options);

}  // namespace routing
