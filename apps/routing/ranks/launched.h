// What a process knows of the one that started it as a rank.
#pragma once

#include <cstdlib>

namespace routing {

// Tells a rank that its launcher speaks for it.
inline constexpr const char* kLaunchedVariable = "ROUTING_LAUNCHED";
// Was this process started by launch_ranks()? Then that one tells people what happened.
inline bool is_launched() {
  return std::getenv(kLaunchedVariable) != nullptr;
}
// How often the run was started anew.
inline constexpr const char* kAttemptVariable = "ROUTING_ATTEMPT";

}  // namespace routing
