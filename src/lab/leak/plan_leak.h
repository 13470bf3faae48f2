// Where does a leak come from? Which head's plan lets early queries read other keys after late tokens changed.
#pragma once

#include "routing/attention/plan/plan.h"
#include "routing/config/attention.h"
#include "routing/model/block.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace routing {

// The key lists of one query, one per group that it is in, in ascending order of their keys: two plans in which these
// are equal attend alike, whatever their groups are called. An empty list is a group in which it sees nothing.
using KeyLists = std::vector<std::vector<std::int32_t>>;
// Of queries 0 … last of one sequence and head. Works from the plan's index, so n may be long.
std::vector<KeyLists> key_lists(const Plan& plan, std::int64_t sequence, std::int64_t head, std::int64_t last);

struct PlanLeak {
  std::int64_t layer = 0;  // counted from 0 at the bottom
  std::int64_t head = 0;   // in its layer
  std::string pattern = {};
  std::int64_t queries = 0;     // of 0 … last, so many read other keys …
  std::int64_t later_keys = 0;  // … and so many read a key after themselves, which no causal plan allows
  std::int64_t queries_checked = 0;
};

// The heads of the lowest layer whose plans differ between sequences 0 and 1 of the last pass in what queries 0 … last
// read, or that read a key after themselves; empty if no layer has one. The states are those of causal self-attention,
// and layers[l] is the attention of layer l.
std::vector<PlanLeak> first_plan_leaks(std::span<const BlockState> states, std::span<const AttentionConfig> layers,
                                       std::int64_t last);

}  // namespace routing
