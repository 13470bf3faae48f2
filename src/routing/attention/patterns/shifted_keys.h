// Shifted keys: the key of token j is the query of token j - 1, in the groups of token j - 1, with the value of token
// j.
//
// What resembles a query most is then an earlier place with the same context, and what is read there is what came next:
// induction in one layer, with shared queries and keys. Token 0 has no key, and neither has a token after padding. A
// key stands at the true position of its value, so causality, windows and relative positions mean what they always
// mean.
#pragma once

#include "routing/attention/plan/token_layout.h"
#include "routing/attention/plan/token_lists.h"
#include "routing/ops/attend/plan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

// The plan in which each group has, instead of its keys, the tokens that follow them.
Plan with_shifted_keys(const Plan& plan, const TokenLayout& layout);

// The lists that the keys of new tokens join, one TokenLists per unit: those of the token before. `before` holds those
// of the token before the first, one token per unit; what it says does not count where a unit begins at position 0.
std::vector<TokenLists> shifted_lists(std::span<const TokenLists> before, std::span<const TokenLists> lists,
                                      std::span<const std::int64_t> first_positions);

}  // namespace routing
