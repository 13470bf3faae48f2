// Lists of keys, for heads that read a sequence piece by piece.
//
// In a causal pattern whose choices depend on the token alone, a head keeps some lists of keys, each sorted by time. A
// token's key joins some of them, its query reads some of them: the last keys up to its own time. The groups of the
// pattern's plans are these lists, so a query sees the same keys at the same ranks as in the pass over the whole
// sequence.
#pragma once

#include "routing/config/attention_rules.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace routing {

struct ListRules {
  std::int64_t lists = 1;  // of each head
  // How many of a list's last keys a query reads at most; absent means all.
  std::optional<std::int64_t> lookback = std::nullopt;
  // Block-local heads: not 0 means that a query reads the keys of its own block of so many positions and of the one
  // before. Their plans number keys from the block before.
  std::int64_t block = 0;
  RepeatRule repeats = RepeatRule::every_time;  // of a key in several lists that a query reads; lists in their order
  friend bool operator==(const ListRules&, const ListRules&) = default;
};

// Texts that are read in segments, each with a memory of the tokens before it: a query of segment k reads no key before
// position k * segment - memory, and ranks count from there. A segment of 0 means that a text is read as one.
struct Horizon {
  std::int64_t segment = 0;
  std::int64_t memory = 0;
  friend bool operator==(const Horizon&, const Horizon&) = default;
};

// The lists of the tokens of one unit (sequence and head), token after token.
struct TokenLists {
  std::vector<std::int32_t> counts = {};  // lists of each token
  std::vector<std::int32_t> lists = {};   // ascending inside a token
};

}  // namespace routing
