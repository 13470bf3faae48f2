// How data.split is written: three parts, train/valid/test, in the order of the file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// One of: a share of the file in percent ("5%"), a count of bytes ("5000000"), or what the others leave ("rest").
struct SplitPart {
  std::optional<double> percent = std::nullopt;
  std::optional<std::int64_t> bytes = std::nullopt;
  bool is_rest() const { return !percent && !bytes; }
  // Whatever the file; a rest may still turn out to be empty.
  bool is_empty() const { return percent.value_or(1.0) == 0.0 || bytes.value_or(1) == 0; }
  friend bool operator==(const SplitPart&, const SplitPart&) = default;
};

// "train", "valid", "test".
const std::vector<std::string>& split_names();

// At most one part is the rest, and the shares are not above 100% together; otherwise a ConfigError that says how a
// split is written.
std::array<SplitPart, 3> parse_split(std::string_view text);

}  // namespace routing
