// The paper's tables as data: which rows there are, what was printed, and how each row is trained here.
//
// A row has the same meaning at both scales; only sizes differ. `paper` is as printed (presets/…-paper and their
// twins), `tiny` what two cores can do. Systems that the authors did not train are rows like theirs where they are
// built here; the rest is literature: printed, never run.
#pragma once

#include "routing/config/experiment.h"
#include "routing/config/words.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace routing {

enum class TableScale { tiny, paper };
constexpr auto words_of(TableScale) {
  using enum TableScale;
  return std::to_array<Word<TableScale>>({{tiny, "tiny"}, {paper, "paper"}});
}

// What is measured of a row.
struct TableMetric {
  std::string key;       // among the numbers of a row's evaluation: "bits_per_dim"
  std::string name;      // "bits/dim"
  int digits = 3;        // worth printing of ours
  int paper_digits = 3;  // as printed; 0 for as many as each figure has
  bool lower_is_better = true;
};

// How a row is trained at one scale.
struct RowRecipe {
  std::string preset = {};
  std::vector<std::string> settings = {};  // key=value, in order
};

struct TableRow {
  std::string id = {};                                          // "routing-h4-l8-w512"
  std::string name = {};                                        // as the paper calls it
  std::vector<std::string> columns = {};                        // under TableSpec::columns, as printed
  std::optional<double> paper_metric = std::nullopt;            // as printed
  std::optional<double> paper_steps_per_second = std::nullopt;  // as printed
  bool is_literature = false;
  bool is_routed = false;  // has heads that select by content: --selection concerns it
  RowRecipe tiny = {};
  RowRecipe paper = {};

  const RowRecipe& recipe(TableScale scale) const { return scale == TableScale::tiny ? tiny : paper; }
};

// What a row's evaluation is told, and what it answers: numbers by name, the table's metric among them.
struct RowToEvaluate {
  std::filesystem::path model = {};  // model.safetensors of the finished run
  ExperimentConfig config = {};      // as it was trained
  std::int64_t test_tokens = 0;      // only the first so many of the part test; 0 means all
  std::function<void(std::int64_t done, std::int64_t all)> progress = {};
};
using RowNumbers = std::vector<std::pair<std::string, double>>;
using RowEvaluation = std::function<RowNumbers(const RowToEvaluate&)>;

// The finished rows of a table together, for what can only be found in all of them.
struct FinishedRow {
  std::string row = {};  // identity of row_identity()
  std::uint64_t seed = 1;
  std::filesystem::path run = {};  // its run directory
};
struct FinishedTable {
  std::filesystem::path folder = {};
  std::vector<FinishedRow> rows = {};  // at least one
  std::function<void(const std::string&)> notes = {};
};
// Writes more files into the folder and returns their paths.
using TableFinish = std::function<std::vector<std::filesystem::path>(const FinishedTable&)>;

enum class TableKind {
  trained,  // every row is trained, then evaluated
  timed,    // steps of all rows in turns; nothing is learned
};

struct TableSpec {
  std::string name = {};    // "cifar10-ablation"
  std::string title = {};   // one line
  std::string source = {};  // where it stands in the paper
  TableKind kind = TableKind::trained;
  TableMetric metric = {};
  std::vector<std::string> columns = {};  // the paper's, between its name and its figures
  std::vector<TableRow> rows = {};
  std::vector<std::string> notes = {};  // what a reader has to know
  std::string baseline = {};            // row that others are compared with; empty for none
  std::string data = {};                // what --data has to be, for messages; empty if none is needed
  std::int64_t tiny_test_tokens = 0;    // evaluated at tiny scale; 0 means the whole part
  std::optional<std::int64_t> tiny_steps = std::nullopt;  // unless the presets' own; rounds of a timed table
  std::optional<std::int64_t> paper_steps = std::nullopt;
  RowEvaluation evaluate = {};  // empty means row_likelihood()
  TableFinish finish = {};      // may be empty

  std::int64_t test_tokens(TableScale scale) const { return scale == TableScale::tiny ? tiny_test_tokens : 0; }
};

const std::vector<TableSpec>& table_specs();
// A ConfigError names the nearest.
const TableSpec& table_spec(std::string_view name);
// A ConfigError names the nearest.
const TableRow& table_row(const TableSpec& spec, std::string_view id);

// The paper's selection; rows of it carry no mark.
inline constexpr RoutingSelection kPaperSelection = RoutingSelection::balanced;

// "routing-h4-l8-w512", or "routing-h4-l8-w512-nearest" for a routed row with another selection than the paper's.
std::string row_identity(const TableRow& row, RoutingSelection selection);

struct RowChoice {
  TableScale scale = TableScale::tiny;
  RoutingSelection selection = kPaperSelection;
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<std::string> settings = {};  // of the user, after the row's own
};

// The configuration of a row, checked. Routing is the paper's with `balanced` and ours with another selection, as in
// the presets SET-causal. A ConfigError for a literature row.
ExperimentConfig row_config(const TableRow& row, const RowChoice& choice);

// Rows of a list such as "local,4,6-9,best:2": ids, numbers from 1 in the order of the table, ranges of numbers, and
// the best K of `ranked`. In the order of the table, each once; an empty text means all. Literature rows are left out,
// and refused where they are named. A ConfigError names the nearest id, or how many there are.
std::vector<std::size_t> select_rows(const TableSpec& spec, const std::string& text,
                                     const std::vector<std::size_t>& ranked);

}  // namespace routing
