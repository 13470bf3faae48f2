// The small choices that plans, the attention operation and the configuration share.
#pragma once

#include "routing/config/words.h"

#include <array>

namespace routing {

// May a token be a key of itself?
enum class SelfRule {
  allowed,                 // always, as in the paper
  only_if_alone,           // only if it sees no other key in any of its groups, as in Reformer
  only_if_alone_in_group,  // the same, each group by itself, as in lucidrains' routing-transformer
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

// Which vectors of a head are turned by an angle that grows with their token's position (Su et al. 2021), so that the
// dot product of a query and a key knows their offset.
enum class Rotary {
  none,
  keys,    // queries and keys
  values,  // values as well, which nothing turns back, as in lucidrains' routing-transformer
};

constexpr auto words_of(Rotary) {
  using enum Rotary;
  return std::to_array<Word<Rotary>>({{none, "none"}, {keys, "keys"}, {values, "values"}});
}
constexpr auto words_of(SelfRule) {
  using enum SelfRule;
  return std::to_array<Word<SelfRule>>(
      {{allowed, "allowed"}, {only_if_alone, "only_if_alone"}, {only_if_alone_in_group, "only_if_alone_in_group"}});
}
constexpr auto words_of(RepeatRule) {
  using enum RepeatRule;
  return std::to_array<Word<RepeatRule>>({{every_time, "every_time"}, {once, "once"}});
}
constexpr auto words_of(Merge) {
  using enum Merge;
  return std::to_array<Word<Merge>>({{mean, "mean"}, {lse, "lse"}});
}
constexpr auto words_of(RelativePosition) {
  using enum RelativePosition;
  return std::to_array<Word<RelativePosition>>({{none, "none"}, {true_offset, "true_offset"}, {rank, "rank"}});
}

}  // namespace routing
