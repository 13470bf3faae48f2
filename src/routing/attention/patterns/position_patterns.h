// Plans that depend on positions alone: full, local, strided, fixed and random attention (local2d.h has the one for
// images). In each, padding is left out and any length from 0 works.
#pragma once

#include "routing/attention/plan/token_layout.h"
#include "routing/config/attention.h"
#include "routing/ops/attend/plan.h"

#include <cstdint>

namespace routing {

// One group with everything: S_i = {j}, or {j <= i} when causal.
Plan full_plan(const TokenLayout& layout, bool causal, SelfRule self);

// Sliding: one group, lookback `window`: the last `window` real tokens up to and including the query's own, so that
// S_i = {j : i - window < j <= i} without padding. When not causal also `lookahead` tokens after it.
//
// Block: tokens are cut into blocks of `window` positions; a group is a block of queries, and its keys are that block
// and the `flange` blocks before it, and as many after it when not causal. In cross-attention the keys are cut into as
// many blocks as the queries, and block b reads key blocks b - flange to b + flange.
Plan local_plan(const TokenLayout& layout, const LocalPattern& pattern, bool causal, SelfRule self);

// A group for each residue of the position modulo `stride`: S_i = {j : (i - j) mod stride = 0}.
Plan strided_plan(const TokenLayout& layout, const StridedPattern& pattern, bool causal, SelfRule self);

// One group: every query reads the last `summary` tokens of each cell of `stride` positions, S_i = {j <= i : j mod
// stride >= stride - summary}, all of them when not causal. A query before the first of them, i < stride - summary,
// sees no key, as Child et al. define it, and gets zero from the head: other heads have to read its own cell.
Plan fixed_plan(const TokenLayout& layout, const FixedPattern& pattern, bool causal, SelfRule self);
// Is this position one of those that all later queries read?
inline bool sums_up_its_cell(const FixedPattern& pattern, std::int64_t position) {
  return position % pattern.stride >= pattern.stride - pattern.summary;
}

// `groups` groups per head, each of `window` distinct real tokens drawn uniformly (all of them where there are fewer).
// In cross-attention the queries and the keys of a group are drawn separately. Head h draws from the stream
// (key, h, group): what a sequence gets does not depend on its place in the batch.
Plan random_plan(const TokenLayout& layout, const RandomPattern& pattern, bool causal, SelfRule self,
                 std::uint64_t key);

}  // namespace routing
