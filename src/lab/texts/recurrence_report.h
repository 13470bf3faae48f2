// What a model pays for targets by how far back they could be found (evaluation/recurrence.h), with intervals, and what
// two models pay differently.
//
// A class has a mean of sum of bits / sum of targets over all windows. Windows are what is independent, not targets, so
// the interval is that of a ratio of two means over windows (Fieller's, ratio_interval.h). Of two models on the same
// windows the numerators are differences window by window: what makes a window hard for both cancels out.
#pragma once

#include "lab/measure/ratio_interval.h"
#include "routing/evaluation/recurrence.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace routing {

struct RecurrenceRow {
  std::string name;       // "all", "near", "far", "never", or the distances "4-7"
  std::int64_t from = 0;  // distances, both included; 0 for classes
  std::int64_t to = 0;
  std::int64_t targets = 0;
  double share = 0.0;       // of all targets
  RatioInterval bits = {};  // a target; not bounded where too few windows have any. Of no targets it means nothing
};

// All targets, the three classes, then the octaves. An InputError without windows or targets.
std::vector<RecurrenceRow> recurrence_rows(std::span<const WindowRecurrence> windows);

// The same rows of first - second: negative where the first is better. An InputError, which names the window, unless
// both are of the same tokens.
std::vector<RecurrenceRow> recurrence_differences(std::span<const WindowRecurrence> first,
                                                  std::span<const WindowRecurrence> second);

}  // namespace routing
