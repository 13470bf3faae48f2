// A run as JSON, the same for `routing runs --json` and the page of `routing serve`. Knows no torch.
#pragma once

#include "lab/runs/run_summary.h"

#include <nlohmann/json.hpp>

namespace routing {

// Everything but what the run is called and where it is. Of a run that cannot be read: when it was changed, and why it
// cannot.
nlohmann::ordered_json run_json(const RunSummary& run);

}  // namespace routing
