// Whole numbers of JSON that somebody else may have written.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace routing {

// Not by JSON's own comparisons: to them 2^64 - 1 is -1.
inline bool is_count(const nlohmann::ordered_json& value, std::int64_t least = 0) {
  if (value.is_number_unsigned()) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return value.get<std::uint64_t>() <= kMost && value.get<std::int64_t>() >= least;
  }
  return value.is_number_integer() && value.get<std::int64_t>() >= least;
}

// A step or a count, from `least` on. What is none (a fraction, a number beyond 63 bits, a list) is an error of the
// type that JSON's own errors are, which name the place; get() would make any number of it.
inline std::int64_t count_in(const nlohmann::ordered_json& value, std::int64_t least = 0) {
  if (is_count(value, least)) return value.get<std::int64_t>();
  // Lists and objects by their type alone: writing them goes as deep as they nest, which a file decides.
  const std::string found = value.is_structured() ? value.type_name() : value.dump();
  throw nlohmann::ordered_json::type_error::create(302, "a count was expected, but found " + found, &value);
}

}  // namespace routing
