#include "commands.h"
#include "lab/runs/run_summary.h"
#include "routing/training/progress.h"
#include "runs/run_json.h"
#include "shell/json_text.h"
#include "shell/options.h"
#include "shell/output.h"
#include "shell/text_table.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct RunsOptions {
  std::string folder = "runs";
  std::string sort = "when";
  bool json = false;
};

std::string local_time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", ::localtime_r(&time, &parts));
  return {text.data(), length};
}

using Before = std::function<bool(const RunSummary&, const RunSummary&)>;

const std::map<std::string, Before>& orders() {
  static const std::map<std::string, Before> all{
      {"when", [](const RunSummary& a, const RunSummary& b) { return a.changed > b.changed; }},
      {"run", [](const RunSummary& a, const RunSummary& b) { return a.folder < b.folder; }},
      {"steps", [](const RunSummary& a, const RunSummary& b) { return a.history.step > b.history.step; }},
      {"weights",
       [](const RunSummary& a, const RunSummary& b) { return a.parameters.value_or(-1) > b.parameters.value_or(-1); }},
      // Figures of one unit stand together.
      {"best",
       [](const RunSummary& a, const RunSummary& b) {
         const auto key = [](const RunSummary& run) {
           const RunHistory& history = run.history;
           return history.best ? std::tuple(0, history.unit->key, history.best->value)
                               : std::tuple(1, std::string(), 0.0);
         };
         return key(a) < key(b);
       }},
  };
  return all;
}

std::vector<RunSummary> sorted_runs(const RunsOptions& options) {
  std::vector<RunSummary> runs;
  for (const fs::path& folder : find_runs(options.folder)) runs.push_back(summarize_run(folder));
  std::stable_sort(runs.begin(), runs.end(), orders().at(options.sort));
  std::stable_partition(runs.begin(), runs.end(), [](const RunSummary& run) { return run.problem.empty(); });
  return runs;
}

Json json_of(const RunSummary& run) {
  Json object{{"run", run.folder.string()}};
  object.update(run_json(run));
  return object;
}

std::string name_below(const RunSummary& run, const std::string& folder) {
  const std::string below = run.folder.lexically_relative(folder).string();
  return below.empty() || below == "." ? run.folder.string() : below;
}

std::vector<std::string> cells_of(const RunSummary& run, const std::string& folder) {
  const std::string name = name_below(run, folder);
  if (!run.problem.empty()) return {name, run.problem};
  const RunHistory& history = run.history;
  // The verdict stands before the details.
  const std::string audit = run.audit.empty() ? "" : ", audit: " + run.audit.substr(0, run.audit.find(';'));
  return {name,
          std::string(to_string(run.state)),
          std::to_string(history.step) + "/" + std::to_string(run.steps),
          history.best ? fixed_digits(history.best->value, 3) + " " + history.unit->name : "-",
          history.labels() + audit,
          local_time_text(run.changed),
          run.data.empty() ? "-" : run.data,
          run.parameters ? short_count(static_cast<double>(*run.parameters)) : "-"};
}

int run(const RunsOptions& options, const ProgramOptions& program) {
  const std::vector<RunSummary> runs = sorted_runs(options);
  if (options.json) {
    Json all = Json::array();
    for (const RunSummary& each : runs) all.push_back(json_of(each));
    std::cout << json_text(all) << "\n";
    return kDone;
  }
  if (runs.empty()) {
    if (!program.quiet) std::cerr << "routing: no runs below " << options.folder << "\n";
    return kDone;
  }
  std::vector<std::vector<std::string>> rows;
  rows.reserve(runs.size());
  for (const RunSummary& each : runs) rows.push_back(cells_of(each, options.folder));
  std::cout << text_table({{.title = "run", .shrinks = true},
                           {.title = "state"},
                           {.title = "step", .right = true},
                           {.title = "best", .right = true},
                           {.title = "label", .shrinks = true},
                           {.title = "when"},
                           {.title = "data", .shrinks = true},
                           {.title = "weights", .right = true}},
                          rows, output_width());
  return kDone;
}

}  // namespace

Command add_runs(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<RunsOptions>();
  CLI::App* app = add_command(
      program, "runs",
      "A table of all runs below a folder\n\n"
      "State, steps, the best evaluation with its label, when it was last logged, data and weights, as the files "
      "tell;\n"
      "no model is loaded. A folder that looks like a run but cannot be read is a line that says why. A run is called\n"
      "diverged if its last loss is above its first; one that ended by a loss that is no number may only look stopped.",
      "routing runs runs --sort best");
  OptionGroup what(*app, "Runs");
  what.add({"DIR", "folder to look below"}, options->folder);
  OptionGroup output(*app, "Output");
  std::vector<std::string> words;
  for (const auto& [word, order] : orders()) words.push_back(word);
  output.add({"--sort BY", "when (newest first), run, best, steps or weights"}, options->sort, one_of(words));
  output.flag(kJsonFlag, options->json);
  return {app, [options, &program_options] { return run(*options, program_options); }};
}

}  // namespace routing
