// Plans of a segment that follows remembered tokens: they are keys, but nobody asks for what they read.
#pragma once

#include "routing/ops/attend/plan.h"

#include <cstdint>

namespace routing {

// The same plan for the queries at positions from `first` on: those before are in no group. Lists are sorted by time,
// so each group only begins later in the list of queries; keys and their ranks stay as they are.
Plan with_queries_from(const Plan& plan, std::int64_t first);

}  // namespace routing
