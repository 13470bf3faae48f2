// Lists of keys, for heads that read a sequence piece by piece.
//
// In a causal pattern whose choices depend on the token alone, a head keeps some lists of keys, each sorted by time. A
// token's key joins some of them, its query reads some of them: the last keys up to its own time. The groups of the
// pattern's plans are these lists, so a query sees the same keys at the same ranks as in the pass over the whole
// sequence.
#pragma once

#include "routing/config/attention_rules.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace routing {

struct ListRules {
  std::int64_t lists = 1;  // of each head
  // How many of a list's last keys a query reads at most; absent means all.
  std::optional<std::int64_t> lookback = std::nullopt;
  // Heads that read in blocks: not 0 means that a query reads the keys from `before` positions before its own block of
  // so many positions on. Their plans number keys from there.
  std::int64_t block = 0;
  std::int64_t before = 0;
  // Where a list does not take all keys: of every `period` positions so many join each list. Empty means that all do,
  // or that it depends on more than the position. With blocks, `block` and `before` are multiples of it.
  std::int64_t period = 1;
  std::vector<std::int64_t> period_keys = {};
  RepeatRule repeats = RepeatRule::every_time;  // of a key in several lists that a query reads; lists in their order
  friend bool operator==(const ListRules&, const ListRules&) = default;

  // Heads that read in blocks: the rank of the first key of a list that a query at this position reads.
  std::int64_t first_rank(std::int64_t list, std::int64_t position) const {
    const std::int64_t first = std::max<std::int64_t>(0, position / block * block - before);
    return period_keys.empty() ? first : first / period * period_keys[static_cast<std::size_t>(list)];
  }
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
