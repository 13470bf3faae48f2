// What a folder decides once for all its rows, and a row's configuration under it.
#pragma once

#include "lab/tables/table_run.h"

namespace routing {

// The terms of the folder; decided and written now if there are none yet. Two processes that start together agree: one
// decides, the other waits. A ConfigError if the options contradict what was decided. Returns nothing if a stop was
// requested in the meantime.
std::optional<TableTerms> agreed_terms(const TableSpec& spec, const TableOptions& options,
                                       const std::vector<std::size_t>& rows);

// A row under the terms, for a seed: row_config() with data, steps and seed. A warm-up longer than a fifth of the steps
// is cut to that, unless the user has set it.
ExperimentConfig planned_config(const TableRow& row, const TableOptions& options, const TableTerms& terms,
                                std::uint64_t seed);

}  // namespace routing
