// `bench distributed`: what training over ranks costs and gains, read off runs of the program, and what the same model
// would do on more ranks over a given network, on paper.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing::bench {

// Of one run; medians over its steps, without the first ones, in which buffers are made and buckets regrouped.
struct RankRun {
  int ranks = 1;
  double step_seconds = 0.0;
  double tokens_per_step = 0.0;  // of all ranks
  double waiting_share = 0.0;    // of a step, in which rank 0 only waited for others
  double bytes_sent = 0.0;       // by rank 0 in a step
  // From the trace of rank 0; 0 for one rank.
  double network_seconds = 0.0;  // in which at least one bucket was on its way
  double overlap_seconds = 0.0;  // of these, while the backward pass went on
  double window_seconds = 0.0;   // from the first bucket to the end of the backward pass
  std::int64_t buckets = 0;      // a step
  std::int64_t gradient_bytes = 0;

  double tokens_per_second() const { return tokens_per_step / step_seconds; }
};

// Reads metrics.jsonl, written with train.log_every=1, and, of several ranks, the trace of rank 0. Steps up to
// `skipped` are left out. A FileError if there is no step left.
RankRun read_rank_run(const std::filesystem::path& run, std::int64_t skipped);

// A step on paper: ranks compute alike, each as long as measured, and gradients travel round a ring while the backward
// pass goes on.
//
//   network(N) = 2 B (N - 1) / N / bandwidth + 2 (N - 1) latency for each bucket of B bytes, summed
//   step(N)    = compute + max(0, network(N) - last - window) + last, the time of the last bucket, which nothing hides
//   speed-up   = N compute / step(N): as many more tokens per second as one rank with the same share
struct PaperModel {
  double compute_seconds = 0.0;
  double window_seconds = 0.0;
  double gradient_bytes = 0.0;
  std::int64_t buckets = 1;
  double bits_per_second = 10e9;
  double latency_seconds = 50e-6;  // of a message between neighbours
};
double network_seconds(const PaperModel& model, int ranks);
double step_seconds(const PaperModel& model, int ranks);
double speedup(const PaperModel& model, int ranks);

}  // namespace routing::bench
