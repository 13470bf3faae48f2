#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "bench/child_training.h"
#include "lab/bench/rank_scaling.h"
#include "lab/measure/statistics.h"
#include "lab/measure/timing.h"
#include "routing/core/files.h"
#include "shell/engine.h"
#include "shell/output.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

bench::RankRun train_once(const DistributedOptions& options, const fs::path& folder, int ranks, int threads) {
  const fs::path run = folder / ("run-" + std::to_string(ranks));
  run_training({.preset = options.preset,
                .data = options.data,
                .run = run,
                .steps = options.steps,
                .ranks = ranks,
                .threads = threads,
                .settings = options.settings},
               folder / "log");
  return bench::read_rank_run(run, kSkippedSteps);
}

double median_of(const std::vector<bench::RankRun>& runs, double (*figure)(const bench::RankRun&)) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const bench::RankRun& run : runs) values.push_back(figure(run));
  return quantile(values, 0.5);
}

void print_runs(BenchOutput& output, const std::vector<bench::RankRun>& runs, int threads, double rate_of_one) {
  const double rate = median_of(runs, [](const auto& run) { return run.tokens_per_second(); });
  const double step = median_of(runs, [](const auto& run) { return run.step_seconds; });
  const double waiting = median_of(runs, [](const auto& run) { return run.waiting_share; });
  const double network = median_of(runs, [](const auto& run) { return run.network_seconds; });
  const double hidden = median_of(runs, [](const auto& run) { return run.overlap_seconds; });
  const double bytes = median_of(runs, [](const auto& run) { return run.bytes_sent; });
  const int ranks = runs.front().ranks;
  nlohmann::ordered_json object{{"bench", "distributed"},
                                {"ranks", ranks},
                                {"threads_a_rank", threads},
                                {"repeats", runs.size()},
                                {"tokens_per_second", rate},
                                {"step_seconds", step},
                                {"waiting_share", waiting},
                                {"network_share", network / step},
                                {"hidden_network_share", network > 0.0 ? hidden / network : 0.0},
                                {"bytes_sent_per_step", bytes},
                                {"buckets", runs.front().buckets},
                                {"ratio", rate / rate_of_one}};
  std::string text = std::to_string(ranks) + (ranks == 1 ? " rank  x " : " ranks x ") + std::to_string(threads) +
                     (threads == 1 ? " thread   " : " threads  ") + fixed_digits(rate, 0) + " tokens/s, " +
                     fixed_digits(1000.0 * step, 1) + " ms per step";
  if (ranks > 1) {
    text += ", ratio " + fixed_digits(rate / rate_of_one, 3) + "; " + fixed_digits(100.0 * waiting, 1) +
            " % of the step waiting, buckets on their way " + fixed_digits(100.0 * network / step, 1) + " % of it, " +
            fixed_digits(100.0 * hidden / std::max(network, 1e-9), 1) + " % of that behind the backward pass; " +
            fixed_digits(bytes / (1 << 20), 2) + " MiB sent per step by each rank in " +
            std::to_string(runs.front().buckets) + " buckets";
  }
  output.print_line(object, text);
}

void print_paper(BenchOutput& output, const std::vector<bench::RankRun>& runs) {
  const double step = median_of(runs, [](const auto& run) { return run.step_seconds * (1.0 - run.waiting_share); });
  bench::PaperModel model{.compute_seconds = step,
                          .window_seconds = median_of(runs, [](const auto& run) { return run.window_seconds; }),
                          .gradient_bytes = static_cast<double>(runs.front().gradient_bytes),
                          .buckets = runs.front().buckets};
  output.print_line({{"bench", "distributed-paper-input"},
                     {"compute_seconds", model.compute_seconds},
                     {"window_seconds", model.window_seconds},
                     {"gradient_bytes", model.gradient_bytes},
                     {"buckets", model.buckets},
                     {"latency_seconds", model.latency_seconds}},
                    "on paper, each rank with its share as measured: " + fixed_digits(1000.0 * step, 1) + " ms, " +
                        fixed_digits(model.gradient_bytes / (1 << 20), 2) + " MiB of gradients, " +
                        fixed_digits(1000.0 * model.window_seconds, 1) + " ms to hide them in");
  for (const double gigabits : {10.0, 100.0}) {
    model.bits_per_second = gigabits * 1e9;
    for (const int ranks : {8, 64, 128}) {
      output.print_line({{"bench", "distributed-paper"},
                         {"ranks", ranks},
                         {"gigabits_per_second", gigabits},
                         {"step_seconds", bench::step_seconds(model, ranks)},
                         {"speedup", bench::speedup(model, ranks)}},
                        "on paper  " + std::to_string(ranks) + " ranks, " + fixed_digits(gigabits, 0) +
                            " Gbit/s: speed-up " + fixed_digits(bench::speedup(model, ranks), 1));
    }
  }
}

}  // namespace

int run_bench_distributed(const DistributedOptions& given, const ProgramOptions& program) {
  DistributedOptions options = given;
  const ScratchFolder folder;
  if (options.data.empty()) {
    options.data = (folder.path() / "text").string();
    write_file_at_once(options.data, made_up_text());
  }
  const int threads = std::max(1, program.threads / options.ranks);
  std::vector<bench::RankRun> one, several;
  const auto progress = bench_progress(program);
  for (int round = 0; round < options.repeats; ++round) {
    one.push_back(train_once(options, folder.path(), 1, threads * options.ranks));
    several.push_back(train_once(options, folder.path(), options.ranks, threads));
    if (progress) progress(round + 1, options.repeats);
  }
  BenchOutput output(program, options.json);
  const double rate_of_one = median_of(one, [](const auto& run) { return run.tokens_per_second(); });
  print_runs(output, one, threads * options.ranks, rate_of_one);
  print_runs(output, several, threads, rate_of_one);
  print_paper(output, several);
  return kDone;
}

}  // namespace routing
