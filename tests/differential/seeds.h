// Seeds of differential tests, and what is drawn from them.
//
// Each seed is one random case. ctest runs a few; ROUTING_DIFFERENTIAL_SEEDS=1-100000 runs as many as wanted
// (scripts/fuzz-differential), and a failure prints the line that runs its seed alone.
#pragma once

#include "routing/core/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace routing::differential {

class Draws {
 public:
  Draws(std::uint64_t seed, std::string_view name) : stream_(seed, name) {}

  // Both ends count.
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + stream_.below(static_cast<std::uint32_t>(last - first + 1));
  }
  bool chance(double probability) { return stream_.uniform() < probability; }
  template <class Value>
  Value one_of(const std::vector<Value>& values) {
    return values.at(stream_.below(static_cast<std::uint32_t>(values.size())));
  }

 private:
  RandomStream stream_;
};

// Calls body(seed) for the seeds that are asked for, 1 … `usual` if none are; after a seed that fails it goes on.
template <class Body>
void for_each_seed(std::uint64_t usual, const Body& body) {
  std::uint64_t first = 1;
  std::uint64_t last = usual;
  if (const char* asked = std::getenv("ROUTING_DIFFERENTIAL_SEEDS")) {
    char* rest = nullptr;
    first = last = std::strtoull(asked, &rest, 10);
    if (*rest == '-') last = std::strtoull(rest + 1, &rest, 10);
    ASSERT_TRUE(*rest == '\0' && first <= last)
        << "ROUTING_DIFFERENTIAL_SEEDS=" << asked << " is no range, such as 1-100";
  }
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string(test.test_suite_name()) + "." + test.name();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("again: ROUTING_DIFFERENTIAL_SEEDS=" + std::to_string(seed) +
                 " build/release/tests/differential_tests --gtest_filter=" + name);
    body(seed);
  }
}

}  // namespace routing::differential
