// How much memory is there?
#pragma once

#include <cstdint>

namespace routing {

// Bytes that the machine has (MemTotal of /proc/meminfo); -1 where the system does not say.
std::int64_t total_memory();
// Bytes that a program could take now without pushing others out (MemAvailable of /proc/meminfo); -1 where the system
// does not say.
std::int64_t available_memory();

}  // namespace routing
