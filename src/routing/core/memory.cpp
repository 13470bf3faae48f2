#include "routing/core/memory.h"

#include <fstream>
#include <string>

namespace routing {

std::int64_t available_memory() {
  std::ifstream facts("/proc/meminfo");
  std::string key;
  std::int64_t kibibytes = 0;
  std::string rest;
  while (facts >> key >> kibibytes && std::getline(facts, rest)) {
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return -1;
}

}  // namespace routing
