// Trains and evaluates the rows of a table. Stopped at any moment and started again it goes on where it was; several
// processes may share a folder, or several machines the rows of a table.
#pragma once

#include "lab/tables/table_results.h"
#include "lab/tables/table_spec.h"
#include "routing/training/trainer.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace routing {

// The runs number index, index + count, index + 2 count … of the list, from 1.
struct TablePart {
  std::int64_t index = 1;
  std::int64_t count = 1;
};
// "2/3"; a ConfigError unless 1 <= index <= count.
TablePart parse_table_part(const std::string& text);

// "1,2,3": different whole numbers, at least one.
std::vector<std::uint64_t> parse_seeds(const std::string& text);

// Called while the table runs; all may be empty.
struct TableObserver {
  std::function<void(const std::string&)> notes = {};
  TrainingObserver training = {};  // its stop_requested() also stops the table
  std::function<void(std::int64_t done, std::int64_t all)> evaluation = {};
};

struct TableOptions {
  std::filesystem::path folder = {};
  std::optional<TableScale> scale = std::nullopt;  // as the folder says, or tiny
  std::string data = {};                           // data.path of every row
  std::string rows = {};                           // see select_rows()
  std::vector<std::uint64_t> seeds = {1};
  TablePart part = {};
  std::int64_t steps = 0;  // 0: as the folder says, or as the table says, or as the presets say
  double minutes = 0.0;    // of training for each part: decides the steps, if > 0
  RoutingSelection selection = kPaperSelection;
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<std::string> settings = {};  // key=value, for every row
  std::string version = {};
  nlohmann::ordered_json host = nlohmann::ordered_json::object();  // facts of the machine, kept with every result
  TableObserver observer = {};
};

// A run of the list: rows of the first seed, then those of the next.
struct PlannedRun {
  std::size_t row = 0;  // place in spec.rows
  std::uint64_t seed = 1;
  friend bool operator==(const PlannedRun&, const PlannedRun&) = default;
};
std::vector<PlannedRun> planned_runs(const std::vector<std::size_t>& rows, const std::vector<std::uint64_t>& seeds,
                                     const TablePart& part);

enum class TableEnd { finished, interrupted };
struct TableOutcome {
  TableEnd end = TableEnd::finished;
  std::int64_t runs = 0;    // of this part
  std::int64_t done = 0;    // now
  std::int64_t before = 0;  // had results already
  std::int64_t busy = 0;    // another process is at them
  std::int64_t failed = 0;  // diverged, now
};

// Runs what is missing. What is decided at the first call stays: scale, steps, settings.
//
// Throws  ConfigError  options that contradict the folder, rows or data that are not there
//         FileError    what cannot be read or written
TableOutcome run_table(const TableSpec& spec, const TableOptions& options);

}  // namespace routing
