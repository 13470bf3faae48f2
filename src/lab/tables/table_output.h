// A table for people and programs: our figures beside the paper's, as Markdown, CSV and a picture.
#pragma once

#include "lab/measure/statistics.h"
#include "lab/tables/table_results.h"
#include "lab/tables/table_spec.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace routing {

struct ReportRow {
  std::size_t row = 0;                    // place in TableSpec::rows
  std::string identity = {};              // see row_identity()
  std::string selection = {};             // of a routed row; empty for others
  std::vector<std::uint64_t> seeds = {};  // that ended well, in order
  std::vector<double> values = {};        // the metric of each
  std::vector<std::string> failures = {};
  std::optional<MeanInterval> metric = std::nullopt;
  // Of its metric minus the baseline's, over the seeds that both have.
  std::optional<MeanInterval> difference = std::nullopt;
  std::optional<double> steps_per_second = std::nullopt;  // mean over seeds
  std::optional<double> slower = std::nullopt;            // than the baseline, of a timed table; mean over seeds
  std::string labels = {};                                // validity, "partial data"
};

struct TableReport {
  TableSpec spec = {};
  std::optional<TableTerms> terms = std::nullopt;  // none before the first result
  std::vector<ReportRow> rows = {};
};

// Every row of the table with the paper's selection, whether there are results or not, and behind it the same row with
// other selections, where there are. A FileError for a result of a row that the table has not.
TableReport make_report(const TableSpec& spec, const std::vector<RowResult>& results);

// "3.512 ± 0.034 (3)": mean, half of the 95 % interval and the number of seeds; "3.512 (1)" for a single one.
std::string interval_text(const MeanInterval& interval, int digits);

// A title, what was run, the table, and the notes below it. A row without results has "-", one of others "reported".
std::string table_markdown(const TableReport& report);
// A line per row, numbers in full; what is not there is empty.
std::string table_csv(const TableReport& report);
nlohmann::ordered_json table_json(const TableReport& report);

// table.md, table.csv, table.png and table.svg in the folder; a picture only if there is a result.
std::vector<std::filesystem::path> write_table(const TableReport& report, const std::filesystem::path& folder);

}  // namespace routing
