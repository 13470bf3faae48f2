// Which preset `routing train --data PATH` takes when none is named: by what the data are and how many.
#pragma once

#include "routing/config/experiment.h"
#include "train/quickstart_size.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// What there is to learn from.
struct OwnData {
  TokenKind tokens = TokenKind::bytes;
  std::int64_t train_tokens = 0;
  std::int64_t image_height = 0;  // 0 for text
  std::int64_t image_width = 0;
  std::int64_t sequence_length = 0;  // as asked for; 0: whatever fits
};

struct PresetChoice {
  // From small to large; which of them pays depends on how fast the machine is.
  std::vector<QuickstartSize> sizes;
  // What follows from the data, as --set would say it.
  std::vector<std::string> settings = {};
};

PresetChoice preset_for(const OwnData& data);

// Images larger than this are read shrunk, unless the size is given: a pixel is three tokens.
inline constexpr std::int64_t kLargestOwnImage = 64;
inline constexpr std::int64_t kShrunkOwnImage = 32;

// The longest sequence of text for so few tokens: half of them, so that batches differ. A few kilobytes are enough to
// try something.
std::int64_t longest_sequence(std::int64_t train_tokens);

}  // namespace routing
