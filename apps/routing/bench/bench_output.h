// How `routing bench` prints rows: a table for people, or one JSON object per line.
#pragma once

#include "commands.h"
#include "lab/bench/row.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace routing {

// Machine and build, as every row carries them.
nlohmann::ordered_json bench_machine(const ProgramOptions& options);

// Prints what the benchmarks hand over, in the one form or the other.
class BenchOutput {
 public:
  BenchOutput(const ProgramOptions& options, bool json);

  // Machine, build and rate of the yardstick on a line of their own, unless JSON was asked for; then the rows. Columns
  // that say nothing for any of the rows are left out of the table.
  void print(const std::vector<bench::Row>& rows);
  // A line that is not a row: the object with the machine's keys added, or the text.
  void print_line(const nlohmann::ordered_json& object, const std::string& text);

 private:
  nlohmann::ordered_json machine_;
  bool json_;
  bool first_ = true;
};

// What to do after each round: a line on standard error that replaces itself, if a person sits there.
std::function<void(int, int)> bench_progress(const ProgramOptions& options);

}  // namespace routing
