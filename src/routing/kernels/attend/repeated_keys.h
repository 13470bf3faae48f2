// RepeatRule::once: which keys has a query already seen in an earlier one of its groups?
//
// A key repeats in a view if it lies inside the view of an earlier group of the same query. Lists ascend in time, so
// what an earlier view shows is one interval of ranks here too, less the keys that the earlier group does not have:
// bits of a pair of groups are worked out once and cut to the interval of each query.
//
// Time      a step for each key and earlier group that has it; then, for each query and two of its groups, a search and
//           a word for each tile of keys
// Threads   units side by side; what is said of a query depends on its own views alone
#pragma once

#include "routing/kernels/attend/attend.h"
#include "routing/kernels/attend/query_view.h"

#include <cstdint>
#include <span>
#include <vector>

namespace routing::kernels {

// What RepeatedKeys points to.
struct RepeatWords {
  std::vector<std::int64_t> first_word;
  std::vector<std::uint64_t> words;

  RepeatedKeys keys() const {
    return first_word.empty() ? RepeatedKeys{} : RepeatedKeys{first_word.data(), words.data()};
  }
  void clear() {
    first_word.clear();
    words.clear();
  }
};

// `views` are those of the plan. A view whose every key repeats becomes empty. Keys that a query skips because they are
// its own never repeat.
void mark_repeats(const AttendPlan& plan, std::span<QueryView> views, RepeatWords& repeats);

}  // namespace routing::kernels
