// Tables of step times: steps of all rows in turns, so that what disturbs one disturbs the others alike.
#pragma once

#include "lab/tables/table_run.h"

namespace routing {

// terms.steps rounds of one step per row. Numbers of a row's result:
//
//   seconds_per_step             median
//   lower_quartile, upper_quartile
//   steps_per_second             1 / median
//   slower_than_baseline         median over rounds of its seconds by the baseline's, where that row is timed too
//
// All rows of the table are timed together, whatever --rows says; a ConfigError for a part of them.
TableOutcome time_table(const TableSpec& spec, const TableOptions& options, const TableTerms& terms);

}  // namespace routing
