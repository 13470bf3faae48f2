#include "lab/measure/runner.h"

#include "routing/core/error.h"

#include <chrono>
#include <cstddef>

namespace routing::bench {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void require_enough_repeats(const RunnerOptions& options) {
  require<ConfigError>(options.repeats >= kFewestRepeats, "repeats is ", options.repeats,
                       ", but a median needs at least ", kFewestRepeats, " runs; raise `repeats`");
}

std::vector<Timing> run_in_turns(const std::vector<Case>& cases, const RunnerOptions& options) {
  require_enough_repeats(options);
  const std::function<double()> clock = options.clock ? options.clock : steady_seconds;
  for (const Case& each : cases) {
    if (each.before) each.before();
    each.run();
  }
  std::vector<std::vector<double>> seconds(cases.size());
  for (int round = 0; round < options.repeats; ++round) {
    for (std::size_t index = 0; index < cases.size(); ++index) {
      const Case& each = cases[index];
      if (each.most_rounds > 0 && round >= each.most_rounds) continue;
      for (int run = 0; run < each.runs_a_round; ++run) {
        if (each.before) each.before();
        const double begin = clock();
        each.run();
        seconds[index].push_back((clock() - begin) / each.items_a_run);
      }
    }
    if (options.progress) options.progress(round + 1, options.repeats);
  }
  std::vector<Timing> timings;
  timings.reserve(seconds.size());
  for (const std::vector<double>& runs : seconds) timings.push_back(summarise(runs));
  return timings;
}

}  // namespace routing::bench
