// How data.split is written: three parts TRAIN/VALID/TEST, in the order of the file.
//
//   "90%/5%/5%"                 shares of the file, with up to four decimals; they sum to 100%
//   "90000000/5000000/5000000"  byte counts; together they may be fewer than the file has
//   "rest/0/2000000"            one part may be what the others leave, of shares or of bytes
//
// Shares and byte counts do not mix, but 0 may stand among shares too. Spaces around a part do not matter.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

enum class SplitUnit { bytes, share, rest };

// Shares are counted in whole ten-thousandths of a percent, so that sums and floors are exact: 100%.
inline constexpr std::int64_t kWholeShare = 1'000'000;

struct SplitPart {
  SplitUnit unit = SplitUnit::rest;
  std::int64_t amount = 0;  // in the unit; of a rest 0, as only the file tells
  // Whatever the file; a rest may still turn out to be empty.
  bool is_empty() const { return unit != SplitUnit::rest && amount == 0; }
  friend bool operator==(const SplitPart&, const SplitPart&) = default;
};

// "train", "valid", "test".
const std::vector<std::string>& split_names();

// At most one of the parts is the rest, and they are all shares (beside rest and 0) or none is. Shares sum to
// kWholeShare, or to at most that if there is a rest. Three byte counts can be added without overflow.
//
// Throws  ConfigError  anything else, with how a split is written
std::array<SplitPart, 3> parse_split(std::string_view text);

}  // namespace routing
