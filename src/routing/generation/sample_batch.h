// Samples that are decoded side by side, one token of each at a time, each with options of its own: where tokens are
// drawn and where samples end, for generate() and for batches of completions alike.
#pragma once

#include "routing/config/words.h"

#include <array>

namespace routing {

enum class StopReason {
  length,   // max_new_tokens, or the end of what the model can read
  end,      // the end token
  stopped,  // the listener said so
};
constexpr auto words_of(StopReason) {
  using enum StopReason;
  return std::to_array<Word<StopReason>>({{length, "length"}, {end, "end"}, {stopped, "stopped"}});
}

}  // namespace routing
