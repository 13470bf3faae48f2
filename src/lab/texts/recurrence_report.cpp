#include "lab/texts/recurrence_report.h"

#include "routing/core/error.h"
#include "routing/evaluation/likelihood.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace routing {
namespace {

using PartOfWindow = std::function<TargetSum(const WindowRecurrence&)>;

TargetSum octave_sum(const WindowRecurrence& window, std::size_t octave) {
  return octave < window.octaves.size() ? window.octaves[octave] : TargetSum{};
}

// Whose nats are compared, window by window; without others these count as they are.
struct Compared {
  std::span<const WindowRecurrence> windows;
  std::span<const WindowRecurrence> others;
};

RecurrenceRow row_of(const Compared& compared, RecurrenceRow row, const PartOfWindow& part) {
  std::vector<double> numerators;
  std::vector<double> targets;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < compared.windows.size(); ++i) {
    const TargetSum sum = part(compared.windows[i]);
    const double other = compared.others.empty() ? 0.0 : part(compared.others[i]).nats;
    numerators.push_back(bits(sum.nats - other));
    targets.push_back(static_cast<double>(sum.targets));
    row.targets += sum.targets;
    all += compared.windows[i].all().targets;
  }
  require<InputError>(all > 0, "recurrence: ", compared.windows.size(), " windows without a target; score at least 1");
  row.share = static_cast<double>(row.targets) / static_cast<double>(all);
  if (row.targets > 0) row.bits = ratio_interval(numerators, targets);
  return row;
}

std::vector<RecurrenceRow> rows_of(const Compared& compared) {
  std::vector<RecurrenceRow> rows{
      row_of(compared, {.name = "all"}, [](const WindowRecurrence& window) { return window.all(); })};
  for (const Recurrence kind : kEvery<Recurrence>) {
    rows.push_back(row_of(compared, {.name = std::string(to_string(kind))}, [&](const WindowRecurrence& window) {
      return window.classes.at(static_cast<std::size_t>(kind));
    }));
  }
  std::size_t octaves = 0;
  for (const WindowRecurrence& window : compared.windows) octaves = std::max(octaves, window.octaves.size());
  for (std::size_t octave = 0; octave < octaves; ++octave) {
    const std::int64_t from = std::int64_t{1} << octave;
    const std::int64_t to = 2 * from - 1;
    rows.push_back(row_of(compared, {.name = std::to_string(from) + "-" + std::to_string(to), .from = from, .to = to},
                          [&](const WindowRecurrence& window) { return octave_sum(window, octave); }));
  }
  return rows;
}

}  // namespace

std::vector<RecurrenceRow> recurrence_rows(std::span<const WindowRecurrence> windows) {
  return rows_of({.windows = windows, .others = {}});
}

std::vector<RecurrenceRow> recurrence_differences(std::span<const WindowRecurrence> first,
                                                  std::span<const WindowRecurrence> second) {
  require<InputError>(first.size() == second.size(), "recurrence: ", first.size(), " windows against ", second.size(),
                      "; compare models on the same");
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto targets = [&](std::span<const WindowRecurrence> windows) { return windows[i].all().targets; };
    require<InputError>(first[i].tokens_hash == second[i].tokens_hash && targets(first) == targets(second),
                        "recurrence: window ", i, " has other tokens for the second model, ", targets(second),
                        " targets against ", targets(first), "; compare models on the same");
  }
  return rows_of({.windows = first, .others = second});
}

}  // namespace routing
