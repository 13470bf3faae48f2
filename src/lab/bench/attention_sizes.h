// The sizes of one layer's attention, and what of it is timed.
#pragma once

#include "routing/config/words.h"

#include <cstdint>

namespace routing::bench {

struct AttentionSizes {
  std::int64_t batch = 1;
  std::int64_t n = 8192;
  std::int64_t heads = 8;
  std::int64_t dim = 64;
  std::int64_t window = 256;
  std::int64_t clusters = 32;
};

enum class Pass { plan, forward, forward_backward };
constexpr auto words_of(Pass) {
  using enum Pass;
  return std::to_array<Word<Pass>>({{plan, "plan"}, {forward, "forward"}, {forward_backward, "forward+backward"}});
}

}  // namespace routing::bench
