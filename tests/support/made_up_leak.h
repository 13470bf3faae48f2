// Measured runs that nobody measured.
#pragma once

#include "lab/leak/leak_report.h"

#include <array>
#include <string>
#include <vector>

namespace routing {

// Two positions per window, one in the first quarter of 8 tokens, one in the third: {teacher-forced, future-replaced,
// prefix-only} of each.
struct MadeUpWindow {
  double every_token = 0.0;
  std::array<double, 3> first = {};
  std::array<double, 3> third = {};
};

inline LeakRun made_up_run(const std::string& selection, std::uint64_t seed, const std::vector<MadeUpWindow>& windows) {
  const bool reads_future = selection == "balanced";
  LeakRun run{.selection = selection,
              .seed = seed,
              .validity = reads_future ? "selection reads the future" : "causal",
              .likelihood = {.sequence_length = 8,
                             .future_replaced = {.promised = !reads_future, .measured = 2},
                             .prefix_only = {.promised = !reads_future, .measured = 2}}};
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const auto window = static_cast<std::int64_t>(w);
    const auto add = [&](std::int64_t position, const std::array<double, 3>& nats) {
      run.likelihood.samples.push_back({.place = {.window = window, .begin = 8 * window, .position = position},
                                        .teacher_forced = nats[0],
                                        .future_replaced = nats[1],
                                        .prefix_only = nats[2]});
      if (nats[1] != nats[0]) ++run.likelihood.future_replaced.different;
      if (nats[2] != nats[0]) ++run.likelihood.prefix_only.different;
    };
    add(1, windows[w].first);
    add(5, windows[w].third);
    run.likelihood.window_nats.push_back(windows[w].every_token);
  }
  return run;
}

// balanced gains 0.5, 0.6 and 0.7 nats over local, and 0.15, 0.1 and 0.2 of them are leak.
inline LeakRun made_up_balanced(std::uint64_t seed = 1) {
  return made_up_run("balanced", seed,
                     {{1.0, {1.0, 1.2, 2.0}, {0.8, 0.9, 1.0}},
                      {1.1, {1.1, 1.3, 2.2}, {1.0, 1.0, 1.2}},
                      {0.9, {0.9, 1.2, 1.9}, {0.7, 0.8, 1.0}}});
}
inline LeakRun made_up_local(std::uint64_t seed = 1) {
  return made_up_run("local", seed,
                     {{1.5, {1.6, 1.6, 1.6}, {1.4, 1.4, 1.4}},
                      {1.7, {1.8, 1.8, 1.8}, {1.6, 1.6, 1.6}},
                      {1.6, {1.5, 1.5, 1.5}, {1.6, 1.6, 1.6}}});
}
// Clearly better than balanced.
inline LeakRun made_up_full(std::uint64_t seed = 1) {
  return made_up_run("full", seed,
                     {{0.5, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
                      {0.6, {0.6, 0.6, 0.6}, {0.6, 0.6, 0.6}},
                      {0.3, {0.4, 0.4, 0.4}, {0.4, 0.4, 0.4}}});
}

}  // namespace routing
