#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "bench/child_training.h"
#include "lab/bench/long_scaling.h"
#include "lab/bench/rank_scaling.h"
#include "lab/measure/timing.h"
#include "routing/config/resolve.h"
#include "routing/core/files.h"
#include "shell/engine.h"
#include "shell/output.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

// The first makes buffers and regroups buckets.
constexpr std::int64_t kSkipped = 1;

// What one training cost.
struct LongRun {
  std::int64_t tokens = 0;
  int ranks = 1;
  bench::RankRun run = {};
  std::int64_t peak_bytes = 0;
  double row_bytes() const {
    return bench::row_bytes_for_one(run.bytes_sent, static_cast<double>(run.gradient_bytes), ranks);
  }
};

LongRun train_once(const LongOptions& options, const fs::path& folder, const LongRun& wanted, int threads,
                   const std::vector<std::string>& more = {}) {
  const fs::path run = folder / "run";
  std::vector<std::string> settings{"train.sequence_ranks=" + std::to_string(wanted.ranks),
                                    "train.sequence_length=" + std::to_string(wanted.tokens), "train.batch_size=1"};
  settings.insert(settings.end(), options.settings.begin(), options.settings.end());
  settings.insert(settings.end(), more.begin(), more.end());
  LongRun done = wanted;
  done.peak_bytes = run_training({.preset = options.preset,
                                  .data = options.data,
                                  .run = run,
                                  .steps = kSkipped + 1,
                                  .ranks = wanted.ranks,
                                  .threads = std::max(1, threads / wanted.ranks),
                                  .settings = std::move(settings),
                                  .further = {"--timeout", "3600"}},
                                 folder / "log");
  done.run = bench::read_rank_run(run, kSkipped);
  return done;
}

void print_run(BenchOutput& output, const LongRun& run) {
  const auto tokens = static_cast<double>(run.tokens);
  output.print_line({{"bench", "long"},
                     {"tokens", run.tokens},
                     {"ranks", run.ranks},
                     {"step_seconds", run.run.step_seconds},
                     {"tokens_per_second", run.run.tokens_per_second()},
                     {"peak_bytes", run.peak_bytes},
                     {"waiting_share", run.run.waiting_share},
                     {"row_bytes_a_token", run.row_bytes() / tokens * run.ranks}},
                    std::to_string(run.tokens) + " tokens, " + std::to_string(run.ranks) +
                        (run.ranks == 1 ? " rank:  " : " ranks: ") + fixed_digits(run.run.step_seconds, 2) +
                        " s a step, " + fixed_digits(run.run.tokens_per_second(), 0) + " tokens/s, " +
                        fixed_digits(static_cast<double>(run.peak_bytes) / (1 << 20), 0) +
                        " MiB in the largest rank, " + fixed_digits(100.0 * run.run.waiting_share, 1) + " % waiting");
}

void print_growth(BenchOutput& output, const std::vector<LongRun>& runs, const LongOptions& options) {
  for (const int ranks : options.ranks) {
    std::vector<bench::GrowthPoint> seconds, bytes;
    for (const LongRun& run : runs) {
      if (run.ranks != ranks || run.tokens < options.fit_from) continue;
      seconds.push_back({static_cast<double>(run.tokens), run.run.step_seconds});
      bytes.push_back({static_cast<double>(run.tokens), static_cast<double>(run.peak_bytes)});
    }
    const std::optional<double> time = bench::growth_exponent(seconds);
    const std::optional<double> memory = bench::growth_exponent(bytes);
    if (!time || !memory) continue;
    output.print_line({{"bench", "long-growth"}, {"ranks", ranks}, {"seconds", *time}, {"bytes", *memory}},
                      std::to_string(ranks) + (ranks == 1 ? " rank, from " : " ranks, from ") +
                          std::to_string(options.fit_from) + " tokens on: seconds grow as n^" + fixed_digits(*time, 2) +
                          ", bytes as n^" + fixed_digits(*memory, 2));
  }
}

// Of a model whose content heads are of this kind.
void print_contents(BenchOutput& output, const LongOptions& options, const fs::path& folder, int threads) {
  for (const std::string& content : options.contents) {
    if (content == "none") continue;
    const LongRun run =
        train_once(options, folder, {.tokens = options.from, .ranks = 2}, threads, {"attention.content=" + content});
    // What the second half reads of the first; gradients of as many come back.
    const double bytes = run.row_bytes() * 2.0 / static_cast<double>(options.from);
    output.print_line(
        {{"bench", "long-bytes"}, {"content", content}, {"bytes_a_token", bytes}},
        content + " content heads: " + fixed_digits(bytes, 1) +
            " bytes of keys and values for each token of a piece that another one reads, all layers together");
  }
}

// Does a piece need rows of all earlier ones, however far back?
bool reads_all_keys(const ExperimentConfig& config) {
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    for (const HeadGroupConfig& group : attention_of_layer(config, layer).head_groups) {
      if (std::holds_alternative<FullPattern>(group.pattern) || std::holds_alternative<StridedPattern>(group.pattern) ||
          std::holds_alternative<FixedPattern>(group.pattern)) {
        return true;
      }
    }
  }
  return false;
}

void print_paper(BenchOutput& output, const LongRun& measured, const ExperimentConfig& config) {
  bench::LongModel model{.compute_seconds = measured.run.step_seconds * (1.0 - measured.run.waiting_share),
                         .row_bytes = measured.row_bytes(),
                         .reads_all = reads_all_keys(config),
                         .gradient_bytes = static_cast<double>(measured.run.gradient_bytes),
                         .layers = static_cast<int>(config.model.layers)};
  const std::int64_t piece = measured.tokens / measured.ranks;
  output.print_line({{"bench", "long-paper-input"},
                     {"piece", piece},
                     {"compute_seconds", model.compute_seconds},
                     {"row_bytes", model.row_bytes},
                     {"gradient_bytes", model.gradient_bytes}},
                    "on paper, a piece of " + std::to_string(piece) + " tokens for each machine: " +
                        fixed_digits(model.compute_seconds, 2) + " s, " + fixed_digits(model.row_bytes / (1 << 20), 2) +
                        " MiB of rows for " + (model.reads_all ? "each later one, " : "the next, ") +
                        fixed_digits(model.gradient_bytes / (1 << 20), 2) + " MiB of gradients");
  for (const double gigabits : {10.0, 100.0}) {
    model.bits_per_second = gigabits * 1e9;
    for (const int ranks : {8, 32, 128}) {
      output.print_line({{"bench", "long-paper"},
                         {"ranks", ranks},
                         {"tokens", piece * ranks},
                         {"gigabits_per_second", gigabits},
                         {"step_seconds", bench::step_seconds(model, ranks)},
                         {"speedup", bench::speedup(model, ranks)}},
                        "on paper  " + std::to_string(ranks) + " machines, " + fixed_digits(gigabits, 0) + " Gbit/s, " +
                            std::to_string(piece * ranks) +
                            " tokens: " + fixed_digits(bench::step_seconds(model, ranks), 2) + " s, speed-up " +
                            fixed_digits(bench::speedup(model, ranks), 1));
    }
  }
}

}  // namespace

int run_bench_long(const LongOptions& given, const ProgramOptions& program) {
  LongOptions options = given;
  const ScratchFolder folder;
  if (options.data.empty()) {
    options.data = (folder.path() / "text").string();
    write_file_at_once(options.data, made_up_text());
  }
  BenchOutput output(program, options.json);
  std::vector<LongRun> runs;
  for (std::int64_t tokens = options.from; tokens <= options.to; tokens *= 2) {
    for (const int ranks : options.ranks) {
      runs.push_back(train_once(options, folder.path(), {.tokens = tokens, .ranks = ranks}, program.threads));
      print_run(output, runs.back());
    }
  }
  print_growth(output, runs, options);
  print_contents(output, options, folder.path(), program.threads);
  // The longest sequence that was shared, by the fewest: rank 0 of two sends what the next one reads and nothing else.
  const LongRun* shared = nullptr;
  for (const LongRun& run : runs) {
    const bool better =
        shared == nullptr || run.tokens > shared->tokens || (run.tokens == shared->tokens && run.ranks < shared->ranks);
    if (run.ranks > 1 && better) shared = &run;
  }
  if (shared != nullptr) {
    print_paper(output, *shared, resolve({.preset = options.preset, .settings = options.settings}));
  }
  return kDone;
}

}  // namespace routing
