// The commands of the program. Each adds itself to the command line and says what to run when it is chosen; main.cpp
// puts them in order.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

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

// Adds a command below another one, or below the program itself. `options` is filled before a command runs and outlives
// it.
using AddCommand = Command(CLI::App& parent, const ProgramOptions& options);

AddCommand add_quickstart, add_train, add_eval, add_generate, add_audit, add_table, add_presets, add_info, add_doctor;
AddCommand add_analyze_patterns, add_analyze_attention, add_analyze_health, add_analyze_jsd, add_analyze_recall,
    add_analyze_leak, add_analyze_distance, add_analyze_curves, add_analyze_spans;
AddCommand add_bench_attention, add_bench_train, add_bench_scaling, add_bench_layers, add_bench_decode,
    add_bench_distributed, add_bench_long;
AddCommand add_data_info, add_data_prepare, add_data_tokenizer;
AddCommand add_runs, add_export, add_convert, add_serve;
AddCommand add_completion, add_man;

}  // namespace routing
