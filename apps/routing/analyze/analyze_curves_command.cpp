#include "commands.h"
#include "lab/runs/run_curves.h"
#include "routing/core/error.h"
#include "routing/training/run_directory.h"
#include "shell/json_text.h"
#include "shell/options.h"
#include "shell/output.h"
#include "shell/text_table.h"

#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct CurvesOptions {
  std::vector<std::string> runs;
  std::string by = "steps";
  double smooth = 0.6;
  std::vector<std::string> paths;
  bool json = false;
};

RunHistory history_of(const std::string& run) {
  std::error_code ignored;
  const bool file = fs::is_regular_file(run, ignored);
  require<FileError>(!file || fs::path(run).extension() == ".jsonl", run,
                     ": is neither the folder of a run nor its metrics.jsonl; give one of them");
  if (file) return read_run_history(run);
  const fs::path metrics = RunDirectory(run).metrics_file();
  require<FileError>(fs::exists(metrics, ignored), run,
                     ": holds no metrics.jsonl; give a folder that routing train --out wrote");
  return read_run_history(metrics);
}

// The last part of their paths, where that tells them apart.
std::vector<std::string> names_of(const std::vector<std::string>& runs) {
  std::vector<std::string> names;
  for (const std::string& run : runs) {
    const fs::path path = fs::path(run).lexically_normal();
    names.push_back((path.has_filename() ? path : path.parent_path()).filename().string());
  }
  const std::set<std::string> different(names.begin(), names.end());
  return different.size() == names.size() && !different.contains(".") ? names : runs;
}

Json json_of(const std::vector<HistoryPoint>& points) {
  Json steps = Json::array();
  Json tokens = Json::array();
  Json minutes = Json::array();
  Json values = Json::array();
  for (const HistoryPoint& point : points) {
    steps.push_back(point.step);
    tokens.push_back(point.tokens);  // null if they are not known
    minutes.push_back(place_on(CurveAxis::minutes, point));
    values.push_back(point.value);
  }
  return {{"steps", steps}, {"tokens", tokens}, {"minutes", minutes}, {"values", values}};
}

Json json_of(const std::string& run, const RunHistory& history) {
  Json object{{"run", run}, {"unit", history.unit->key}};
  object["best"] = history.best ? Json(history.best->value) : Json(nullptr);
  object["best_step"] = history.best ? Json(history.best->step) : Json(nullptr);
  object["validity"] = history.validity;
  if (!history.data_label.empty()) object["data_label"] = history.data_label;
  object["training"] = json_of(history.training);
  object["evaluation"] = json_of(history.evaluation);
  return object;
}

std::string figure_cell(double value) {
  return std::isfinite(value) ? fixed_digits(value, 3) : "-";
}

void print(const std::vector<NamedHistory>& runs, const std::vector<std::string>& paths) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(runs.size());
  for (const auto& [name, history] : runs) {
    rows.push_back({name, history.best ? figure_cell(history.best->value) : "-",
                    history.best ? std::to_string(history.best->step) : "-",
                    history.training.empty() ? "-" : figure_cell(history.training.back().value),
                    std::to_string(history.step), fixed_digits(history.seconds / 60.0, 1), history.labels()});
  }
  std::cout << text_table({{.title = "run", .shrinks = true},
                           {.title = "best " + runs.front().history.unit->name, .right = true},
                           {.title = "at step", .right = true},
                           {.title = "training", .right = true},
                           {.title = "steps", .right = true},
                           {.title = "minutes", .right = true},
                           {.title = "label", .shrinks = true}},
                          rows, output_width());
  for (const std::string& path : paths) std::cout << path << "\n";
}

int run(const CurvesOptions& options) {
  const std::vector<std::string> paths = options.paths.empty() ? std::vector<std::string>{"curves.png"} : options.paths;
  for (const std::string& path : paths) figure_format(path);
  std::vector<NamedHistory> runs;
  const std::vector<std::string> names = names_of(options.runs);
  for (std::size_t i = 0; i < names.size(); ++i) runs.push_back({names[i], history_of(options.runs[i])});
  const CurvesFigure figure =
      curves_of_runs(runs, {.by = parse_word<CurveAxis>(options.by, "--by"), .smoothing = options.smooth});
  for (const std::string& path : paths) write_curves_figure(figure, path);
  if (!options.json) {
    print(runs, paths);
    return kDone;
  }
  Json all = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) all.push_back(json_of(options.runs[i], runs[i].history));
  std::cout << json_text({{"runs", all}, {"written", paths}}) << "\n";
  return kDone;
}

}  // namespace

Command add_analyze_curves(CLI::App& analyze, const ProgramOptions& /*program*/) {
  const auto options = std::make_shared<CurvesOptions>();
  CLI::App* app = add_command(
      analyze, "curves",
      "Losses of runs over steps, tokens or minutes, in one picture\n\n"
      "Training as lines, evaluations as dots, in the unit that the runs report; at the right of each its best\n"
      "evaluation. Reads metrics.jsonl only, also of a run that is still training.",
      "routing analyze curves runs/first runs/second --by minutes --out curves.svg");
  OptionGroup runs(*app, "Runs");
  runs.add({"RUN", "folders of runs, all of one unit, or their metrics.jsonl"}, options->runs)->required();
  OptionGroup picture(*app, "Picture");
  picture.add({"--by AXIS", "steps, tokens or minutes"}, options->by, one_of({"steps", "tokens", "minutes"}));
  picture.add({"--smooth W", "lines as TensorBoard smooths them, from 0, as they are, to below 1; they stay, pale"},
              options->smooth, CLI::Range(0.0, 0.9999));
  OptionGroup output(*app, "Output");
  output.add({"--out FILE", "figure to write, .png or .svg; may be repeated; default: curves.png"}, options->paths);
  output.flag(kJsonFlag, options->json);
  return {app, [options] { return run(*options); }};
}

}  // namespace routing
