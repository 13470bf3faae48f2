#include "bench/bench_output.h"
#include "lab/tables/table_output.h"
#include "lab/tables/table_run.h"
#include "routing/config/resolve.h"
#include "routing/core/error.h"
#include "shell/engine.h"
#include "shell/interrupts.h"
#include "shell/json_text.h"
#include "shell/usage_error.h"
#include "table/table_options.h"
#include "train/training_display.h"
#include "version.h"

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json listed_table(const TableSpec& spec) {
  Json object{{"table", spec.name}, {"title", spec.title}, {"source", spec.source}, {"rows", Json::array()}};
  for (std::size_t i = 0; i < spec.rows.size(); ++i) {
    const TableRow& row = spec.rows[i];
    object["rows"].push_back({{"number", i + 1},
                              {"row", row.id},
                              {"model", row.name},
                              {"columns", row.columns},
                              {"reported", row.is_literature},
                              {"routed", row.is_routed},
                              {"paper", row.paper_metric ? Json(*row.paper_metric) : Json(nullptr)}});
  }
  return object;
}

void print_list_of_tables() {
  for (const TableSpec& spec : table_specs()) {
    std::size_t runs = 0;
    for (const TableRow& row : spec.rows) runs += row.is_literature ? 0 : 1;
    std::cout << std::left << std::setw(18) << spec.name << std::right << std::setw(3) << runs << " rows to run   "
              << spec.title << "; " << spec.source << "\n";
  }
}

void print_list_of_rows(const TableSpec& spec) {
  std::cout << spec.name << ": " << spec.title << "; " << spec.source << "\n";
  for (std::size_t i = 0; i < spec.rows.size(); ++i) {
    const TableRow& row = spec.rows[i];
    std::string columns;
    for (std::size_t c = 0; c < spec.columns.size(); ++c) columns += ", " + spec.columns[c] + " " + row.columns[c];
    std::cout << std::right << std::setw(4) << i + 1 << "  " << std::left << std::setw(24) << row.id << row.name
              << columns;
    if (row.paper_metric) std::cout << ": " << *row.paper_metric << " " << spec.metric.name;
    std::cout << (row.is_literature ? " (reported)" : "") << "\n";
  }
}

int list(const TableCommandOptions& options) {
  if (options.json) {
    Json tables = Json::array();
    for (const TableSpec& spec : table_specs()) {
      if (options.name.empty() || &spec == &table_spec(options.name)) tables.push_back(listed_table(spec));
    }
    std::cout << tables.dump(2) << "\n";
  } else if (options.name.empty()) {
    print_list_of_tables();
  } else {
    print_list_of_rows(table_spec(options.name));
  }
  return kDone;
}

TableOptions table_options(const TableCommandOptions& given, const ProgramOptions& program, TrainingDisplay& display) {
  const std::string unit = table_spec(given.name).kind == TableKind::timed ? "round" : "window";
  TableOptions options{.folder = fs::absolute(given.out),
                       .data = given.data,
                       .rows = given.rows,
                       .seeds = parse_seeds(given.seeds),
                       .steps = given.steps,
                       .minutes = given.minutes,
                       .selection = parse_word<RoutingSelection>(given.selection, "selection"),
                       .environment = routing_environment(),
                       .settings = given.settings,
                       .version = program_version(),
                       .host = bench_machine(program)};
  if (!given.scale.empty()) options.scale = parse_word<TableScale>(given.scale, "scale");
  if (!given.part.empty()) options.part = parse_table_part(given.part);
  options.observer = {
      .notes = [&display](const std::string& line) { display.say(line); },
      .training = display.observer(),
      .evaluation = [&display](std::int64_t done, std::int64_t all) { display.evaluation_progress(done, all); }};
  return options;
}

void say_outcome(const TableOutcome& outcome, TrainingDisplay& display) {
  display.finish();
  std::string text = std::to_string(outcome.done) + " of " + std::to_string(outcome.runs) + " runs done now";
  if (outcome.before > 0) text += ", " + std::to_string(outcome.before) + " before";
  if (outcome.failed > 0) text += ", " + std::to_string(outcome.failed) + " diverged";
  if (outcome.busy > 0) text += ", " + std::to_string(outcome.busy) + " left to another process";
  display.say(text);
}

// What a table finds in its finished rows together. Rows whose runs are on another machine are left out.
std::vector<fs::path> finish_table(const TableSpec& spec, const TableFolder& folder, TrainingDisplay& display) {
  if (!spec.finish) return {};
  FinishedTable finished{.folder = folder.folder(), .notes = [&](const std::string& line) { display.say(line); }};
  for (const RowResult& result : folder.read_results(spec.name)) {
    const fs::path run = folder.run(result.row, result.seed);
    if (!result.failure.empty()) continue;
    if (fs::is_directory(run)) {
      finished.rows.push_back({.row = result.row, .seed = result.seed, .run = run});
    } else {
      display.say(result.row + " seed " + std::to_string(result.seed) + " is left out of it: " + run.string() +
                  " is not here");
    }
  }
  return finished.rows.empty() ? std::vector<fs::path>{} : spec.finish(finished);
}

int report(const TableSpec& spec, const TableCommandOptions& options, TrainingDisplay& display) {
  const TableFolder folder(options.out);
  require<ConfigError>(fs::is_directory(folder.folder()), options.out,
                       ": is not a folder of a table; name it with --out, or run the table first");
  const TableReport table = make_report(spec, folder.read_results(spec.name));
  for (const fs::path& path : write_table(table, folder.folder())) display.say("written " + path.string());
  // With a part, other processes may still be at theirs; --report then looks into all rows together.
  if (options.part.empty()) {
    for (const fs::path& path : finish_table(spec, folder, display)) display.say("written " + path.string());
  }
  std::cout << (options.json ? json_text(table_json(table)) + "\n" : table_markdown(table));
  return kDone;
}

}  // namespace

int run_table_command(const TableCommandOptions& options, const ProgramOptions& program) {
  if (options.list) return list(options);
  const TableSpec& spec = table_spec(options.name);
  if (options.out.empty()) {
    throw UsageError("--out is required", "name a folder for the table, such as --out runs/" + spec.name);
  }
  if (spec.kind == TableKind::timed && !options.rows.empty()) {
    throw UsageError("--rows " + options.rows + ": " + spec.name + " times all its rows in turns", "leave --rows out");
  }
  if (spec.data.empty() && !options.data.empty()) {
    throw UsageError("--data " + options.data + ": " + spec.name + " makes its data up", "leave --data out");
  }
  const bool routed =
      std::any_of(spec.rows.begin(), spec.rows.end(), [](const TableRow& row) { return row.is_routed; });
  if (!routed && parse_word<RoutingSelection>(options.selection, "selection") != kPaperSelection) {
    throw UsageError("--selection " + options.selection + ": the rows of " + spec.name + " have their own selections",
                     "routing table " + spec.name + " --list  shows them");
  }
  TrainingDisplay display(program.quiet);
  if (options.report) return report(spec, options, display);
  TableOutcome outcome;
  {
    const InterruptGuard interrupts;
    outcome = run_table(spec, table_options(options, program, display));
    say_outcome(outcome, display);
  }
  if (outcome.end == TableEnd::interrupted) {
    std::cerr << "routing: stopped, state saved; the same command goes on\n";
    return kInterrupted;
  }
  return report(spec, options, display);
}

}  // namespace routing
