#include "routing/core/memory.h"

#include <fstream>
#include <string>

namespace routing {

namespace {

std::int64_t memory_fact(const std::string& wanted) {
  std::ifstream facts("/proc/meminfo");
  std::string key;
  std::int64_t kibibytes = 0;
  std::string rest;
  while (facts >> key >> kibibytes && std::getline(facts, rest)) {
    if (key == wanted) return kibibytes * 1024;
  }
  return -1;
}

}  // namespace

std::int64_t total_memory() {
  return memory_fact("MemTotal:");
}

std::int64_t available_memory() {
  return memory_fact("MemAvailable:");
}

}  // namespace routing
