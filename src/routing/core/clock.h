// What time it is, as files and people see it.
#pragma once

#include <string>

namespace routing {

// Now, as "2026-11-16T12:00:00Z".
std::string utc_now();

}  // namespace routing
