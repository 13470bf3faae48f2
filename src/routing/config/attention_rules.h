// The small choices that plans, the attention operation and the configuration share.
#pragma once

#include <array>
#include <string_view>

namespace routing {

// May a token be a key of itself?
enum class SelfRule {
  allowed,        // always, as in the paper
  only_if_alone,  // only if it sees no other key in any of its groups, as in Reformer
};

// How often does a key count for a query that sees it in several of its groups?
enum class RepeatRule {
  every_time,  // in each of them
  once,        // in the first of them only, as in Reformer, whose rounds of hashing find the same key again
};

// How the results of a token's several groups become one.
enum class Merge {
  mean,  // the average of the groups' softmax outputs, divided by (count + eps)
  lse,   // one softmax over all keys of all its groups; what a key in two groups counts, RepeatRule says
};

// What indexes the relative-position tables of Shaw et al.
enum class RelativePosition {
  none,
  true_offset,  // key position minus query position
  rank,         // key rank minus the query's own place in its group's key list
};

inline constexpr std::array kSelfRules{SelfRule::allowed, SelfRule::only_if_alone};
inline constexpr std::array kRepeatRules{RepeatRule::every_time, RepeatRule::once};
inline constexpr std::array kMerges{Merge::mean, Merge::lse};
inline constexpr std::array kRelativePositions{RelativePosition::none, RelativePosition::true_offset,
                                               RelativePosition::rank};

std::string_view to_string(SelfRule rule);
std::string_view to_string(RepeatRule rule);
std::string_view to_string(Merge merge);
std::string_view to_string(RelativePosition position);

// The inverse of to_string; a ConfigError names the nearest word.
SelfRule parse_self_rule(std::string_view word);
RepeatRule parse_repeat_rule(std::string_view word);
Merge parse_merge(std::string_view word);
RelativePosition parse_relative_position(std::string_view word);

}  // namespace routing
