// Prompts that begin alike are read once.
//
// The cache keeps snapshots: sequences that have read a prompt or the beginning of one, with the logits that follow. A
// request that begins with the same tokens goes on from a fork of the longest of them. Heads with windows let go of
// keys as they read on, so a snapshot serves at its own length only, and it matters where they are taken:
//
//   at the end of a prompt        for the same prompt again, which then reads nothing, and for what continues it
//   where two prompts part        the length that a new prompt shares with one that was seen before
//   after 1, 2, 4, 8, … blocks    so that of what a prompt shares with the one before it, about half is known at once
//
// Bits do not depend on it: a fork of a sequence gives what reading the same tokens again would.
//
// Work       looking up takes time in proportion to the prompt, however many snapshots there are: they stand in a tree
// of
//            tokens (prefix_tree.h)
// Memory     `bytes` holds for the rows of keys and values that snapshots hold, each counted once however many share
// it,
//            their lists, logits and tokens. The snapshot that was not used for the longest time goes first
// Threads    one caller at a time
#pragma once

#include "routing/generation/decoder.h"

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <vector>

namespace routing {

struct PrefixCacheLimits {
  std::int64_t bytes = std::int64_t{256} << 20U;  // 0 keeps nothing
  std::int64_t least_tokens = 16;                 // shorter beginnings are read faster than they are kept
};

class PrefixCache {
 public:
  struct Facts {
    std::int64_t hits = 0, misses = 0;  // prompts that began with a snapshot, and those that did not
    std::int64_t tokens_saved = 0;      // that did not have to be read
    std::int64_t insertions = 0, evictions = 0;
    std::int64_t snapshots = 0, bytes = 0;  // now
  };
};

}  // namespace routing
