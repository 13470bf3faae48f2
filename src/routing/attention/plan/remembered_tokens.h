// Plans of a segment that follows remembered tokens: they are keys, but nobody asks for what they read.
#pragma once

#include "routing/ops/attend/plan.h"

#include <cstdint>

namespace routing {

// The same plan for the queries at positions from `first` on: those before are in no group. Lists are sorted by time,
// so each group only begins later in the list of queries; keys and their ranks stay as they are.
Plan with_queries_from(const Plan& plan, std::int64_t first);

// The plan of queries from position `first_query` on, as with_queries_from() makes it, over rows of the queries alone
// and of the keys from `first_key` on, which no query reads beyond. Lists lose the keys before that in steps of 64, so
// that tiles stay where they are; so first_key must be so much lower than what is read, unless it is 0.
Plan with_rows_from(const Plan& plan, std::int64_t first_query, std::int64_t first_key);

}  // namespace routing
