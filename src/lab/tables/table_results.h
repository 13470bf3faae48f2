// What is known of a table so far: one small file per run, so that results of several machines can be put into one
// folder.
//
//   DIR/table.json                 what was decided: table, scale, steps, settings
//   DIR/results/ROW-seedN.json     one finished run
//   DIR/runs/ROW-seedN/            its run directory
#pragma once

#include "lab/tables/table_spec.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace routing {

// Equal for all rows of a folder, or they could not be compared.
struct TableTerms {
  std::string table = {};
  TableScale scale = TableScale::tiny;
  static constexpr std::int64_t kOwnSteps = 0;
  std::int64_t steps = kOwnSteps;          // of every row, or those of each row's preset
  std::vector<std::string> settings = {};  // key=value, of the user
  friend bool operator==(const TableTerms&, const TableTerms&) = default;
};

struct RowResult {
  TableTerms terms = {};
  std::string row = {};  // identity of row_identity()
  std::uint64_t seed = 1;
  std::string failure = {};  // why there are no numbers; empty for a run that ended well
  RowNumbers numbers = {};   // of the evaluation
  std::string metric = {};   // which of them the table shows
  double steps_per_second = 0.0;
  std::int64_t train_tokens = 0;
  double seconds = 0.0;  // of training
  std::string validity = {};
  std::string data_label = {};
  std::string data_hash = {};  // of the training part; empty in results of earlier versions
  std::string date = {};       // UTC
  std::string version = {};
  nlohmann::ordered_json host = {};

  // A number by its name, if the evaluation gave it.
  std::optional<double> number(const std::string& key) const;
  std::optional<double> value() const { return failure.empty() ? number(metric) : std::nullopt; }
};

nlohmann::ordered_json to_json(const TableTerms& terms);
nlohmann::ordered_json to_json(const RowResult& result);
// A FileError that begins with `origin` for what is no such object.
TableTerms terms_from_json(const nlohmann::ordered_json& object, const std::string& origin);
RowResult result_from_json(const nlohmann::ordered_json& object, const std::string& origin);

class TableFolder {
 public:
  explicit TableFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path terms_file() const { return folder_ / "table.json"; }
  std::filesystem::path run(const std::string& row, std::uint64_t seed) const;
  std::filesystem::path result_file(const std::string& row, std::uint64_t seed) const;

  std::optional<TableTerms> read_terms() const;
  void write_terms(const TableTerms& terms) const;
  bool has_result(const std::string& row, std::uint64_t seed) const;
  // In one step: a reader sees all of it or nothing.
  void write_result(const RowResult& result) const;
  // All, by file name. A FileError if two were made under different terms or of different data, or one of another
  // table.
  std::vector<RowResult> read_results(const std::string& table) const;

 private:
  std::filesystem::path folder_;
};

// "300 steps", or "the steps of their presets".
std::string steps_text(const TableTerms& terms);

// "table cifar10-ablation at tiny scale, 300 steps, a=b".
std::string terms_text(const TableTerms& terms);

// Numbers of routed rows of the table (places in spec.rows) by the mean of their metric, best first; only those with
// results under this selection.
std::vector<std::size_t> ranked_routed_rows(const TableSpec& spec, const std::vector<RowResult>& results,
                                            RoutingSelection selection);

}  // namespace routing
