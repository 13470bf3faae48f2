// Tables that look into trained models: the paper's table of divergences, and three of our own. Each trains its rows
// like any other table; what is looked for is found in all finished rows together, and written beside the table.
//
//   jsd      how differently heads attend, layer by layer: jsd.md, jsd.png
//   leak     what each selection owes to the future: leak.md, leak.csv, leak.json, leak.png
//   recall   who remembers how far: distance.md, distance.png
//   text     does attention by content pay on text: recurrence.md, recurrence.png (text_table.h)
#pragma once

#include "lab/tables/table_spec.h"

#include <vector>

namespace routing {

std::vector<TableSpec> our_tables();

}  // namespace routing
