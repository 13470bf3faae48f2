// Lines of metrics.jsonl and clusters.jsonl as the page gets them. Knows no torch.
#pragma once

#include "serve/page/growing_lines.h"
#include "serve/page/run_catalog.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>

namespace routing {

// {"from", "next", "lines", "problem"}: see RunPages::metrics(). Looks at the file.
nlohmann::ordered_json metrics_json(GrowingLines& lines, std::size_t after, const RunCatalog& catalog);

// {"after", "heads", "steps", "shares", "dead", "problem"}, of the lines from `first` on: see RunPages::clusters().
// Looks at the file.
nlohmann::ordered_json clusters_json(GrowingLines& lines, std::size_t first, const RunCatalog& catalog);

// The first line of a later step; size() if there is none.
std::size_t first_line_behind(const GrowingLines& lines, std::int64_t step);

}  // namespace routing
