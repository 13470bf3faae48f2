// `routing table text`: does attention by content pay on real text? One small byte model; rows differ in what two added
// heads read. Beside the table, recurrence.md and recurrence.png say where the difference comes from: bits by how far
// back a target could be found, and what the row `routed` pays less than every other, paired over windows.
#pragma once

#include "lab/tables/recall_distance.h"
#include "lab/tables/table_spec.h"
#include "lab/texts/recurrence_report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

TableSpec text_table();

// A trained row on the windows of the test part.
struct RecurrenceOfRow {
  std::string row = {};
  std::uint64_t seed = 1;
  std::vector<WindowRecurrence> windows = {};
  ContentPairs pairs = {};  // counted in the first window
};

// Bits of every row by class and the keys that its heads read, and the differences of `reference` from each row of the
// same seed with their intervals. An InputError without rows, or if rows of a seed are of different windows.
std::string recurrence_markdown(const std::vector<RecurrenceOfRow>& rows, const std::string& reference);

}  // namespace routing
