#include "lab/measure/memory.h"

#include "routing/core/block_pool.h"

#include <algorithm>
#include <fstream>
#include <malloc.h>
#include <string>

namespace routing::bench {
namespace {

// A line of /proc/self/status, "VmHWM:  1234 kB", in bytes; 0 if there is none.
std::int64_t status_bytes(const std::string& wanted) {
  std::ifstream file("/proc/self/status");
  for (std::string key; file >> key;) {
    std::int64_t kibibytes = 0;
    if (key == wanted && file >> kibibytes) return kibibytes * 1024;
    std::getline(file, key);
  }
  return 0;
}

bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << 5 << std::flush;
  return file.good();
}

}  // namespace

std::int64_t resident_bytes() {
  block_pool().release_waiting();
  malloc_trim(0);
  return status_bytes("VmRSS:");
}

std::int64_t allocated_bytes() {
  const auto malloced = mallinfo2();
  return static_cast<std::int64_t>(malloced.uordblks + malloced.hblkhd + block_pool().usage().in_use);
}

std::optional<std::int64_t> peak_bytes_above(std::int64_t before, const std::function<void()>& work) {
  block_pool().release_waiting();
  malloc_trim(0);
  const bool was_reset = reset_peak();
  work();
  if (!was_reset) return std::nullopt;
  return std::max<std::int64_t>(0, status_bytes("VmHWM:") - before);
}

}  // namespace routing::bench
