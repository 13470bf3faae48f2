#include "lab/bench/rank_scaling.h"

#include "lab/measure/statistics.h"
#include "lab/measure/timing.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/training/log/metrics_log.h"
#include "routing/training/rank_log.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace routing::bench {
namespace {

struct Span {
  double begin = 0.0;
  double end = 0.0;
};

double total(const std::vector<Span>& spans) {
  double sum = 0.0;
  for (const Span& span : spans) sum += span.end - span.begin;
  return sum;
}

// Without overlaps, in order.
std::vector<Span> joined(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> result;
  for (const Span& span : spans) {
    if (!result.empty() && span.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, span.end);
    } else {
      result.push_back(span);
    }
  }
  return result;
}

struct StepSpans {
  std::vector<Span> buckets;
  Span backward;
  std::int64_t bytes = 0;
};

std::map<std::int64_t, StepSpans> read_trace(const std::filesystem::path& path) {
  std::map<std::int64_t, StepSpans> steps;
  const auto trace = nlohmann::json::parse(read_file(path));
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    StepSpans& step = steps[event.at("args").at("step").get<std::int64_t>()];
    const double begin = event.at("ts").get<double>() * 1e-6;
    const Span span{begin, begin + event.at("dur").get<double>() * 1e-6};
    if (event.at("cat") == "network") {
      step.buckets.push_back(span);
      step.bytes += event.at("args").at("bytes").get<std::int64_t>();
    } else if (event.at("name") == "backward") {
      step.backward = span;
    }
  }
  return steps;
}

void add_trace(const std::filesystem::path& run, std::int64_t skipped, RankRun& result) {
  const std::filesystem::path path = rank_log_path(run, 0).parent_path() / "trace-rank-0000.json";
  std::vector<double> network, overlap, window;
  for (const auto& [number, step] : read_trace(path)) {
    if (number <= skipped || step.buckets.empty()) continue;
    const std::vector<Span> busy = joined(step.buckets);
    std::vector<Span> hidden;
    for (Span span : busy) {
      span.end = std::min(span.end, step.backward.end);
      // The last bucket starts when nothing is left to compute.
      if (span.begin < step.buckets.back().begin) hidden.push_back(span);
    }
    network.push_back(total(busy));
    overlap.push_back(total(hidden));
    window.push_back(step.buckets.back().begin - busy.front().begin);
    result.buckets = static_cast<std::int64_t>(step.buckets.size());
    result.gradient_bytes = step.bytes;
  }
  require<FileError>(!network.empty(), path.string(), ": has no step after ", skipped, "; trace more steps");
  result.network_seconds = quantile(network, 0.5);
  result.overlap_seconds = quantile(overlap, 0.5);
  result.window_seconds = quantile(window, 0.5);
}

}  // namespace

RankRun read_rank_run(const std::filesystem::path& run, std::int64_t skipped) {
  const std::filesystem::path path = run / "metrics.jsonl";
  RankRun result;
  std::vector<double> seconds, tokens, waiting, bytes;
  double seconds_before = 0.0;
  double tokens_before = 0.0;
  for (const auto& line : read_metrics(path)) {
    if (!line.contains("train_loss_nats")) continue;
    const double now = line.at("seconds").get<double>();
    const double all_tokens = line.at("tokens").get<double>();
    const double step = now - std::exchange(seconds_before, now);
    const double new_tokens = all_tokens - std::exchange(tokens_before, all_tokens);
    result.ranks = line.value("ranks", 1);
    if (line.at("step").get<std::int64_t>() <= skipped) continue;
    seconds.push_back(step);
    tokens.push_back(new_tokens);
    waiting.push_back(line.value("waiting_share", 0.0));
    bytes.push_back(line.value("bytes_sent_per_step", 0.0));
  }
  require<FileError>(!seconds.empty(), path.string(), ": has no step after ", skipped, "; train more steps");
  result.step_seconds = quantile(seconds, 0.5);
  result.tokens_per_step = quantile(tokens, 0.5);
  result.waiting_share = quantile(waiting, 0.5);
  result.bytes_sent = quantile(bytes, 0.5);
  if (result.ranks > 1) add_trace(run, skipped, result);
  return result;
}

double network_seconds(const PaperModel& model, int ranks) {
  const double n = ranks;
  const double transfer = 2.0 * model.gradient_bytes * 8.0 * (n - 1.0) / n / model.bits_per_second;
  return transfer + 2.0 * (n - 1.0) * model.latency_seconds * static_cast<double>(model.buckets);
}

double step_seconds(const PaperModel& model, int ranks) {
  if (ranks == 1) return model.compute_seconds;
  const double network = network_seconds(model, ranks);
  const double last = network / static_cast<double>(model.buckets);
  return model.compute_seconds + std::max(0.0, network - last - model.window_seconds) + last;
}

double speedup(const PaperModel& model, int ranks) {
  return static_cast<double>(ranks) * model.compute_seconds / step_seconds(model, ranks);
}

}  // namespace routing::bench
