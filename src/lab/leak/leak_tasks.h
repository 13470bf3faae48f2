// Can a model learn to use what it should not see? Two made-up sources whose entropy is known, learned from scratch by
// a small model with the audited configuration's own attention.
//
//   coin flips   tokens 0 and 1, each with probability 1/2 and independent: nothing predicts them, so no honest model
//                gets below ln 2 nats per token
//   secret       symbols 1 … 15, drawn independently in the first half of the sequence; the second half is one symbol
//                over and over. In the first half stands a marker (16), and the token after it is that same symbol:
//                the secret. Before the second half is seen it is one of 15, so no honest model gets below ln 15 nats
//                there
//
// A mean below the floor on fresh sequences is only possible by reading the future. The reverse proves nothing: a model
// that could leak may fail to learn how.
#pragma once

#include "routing/config/experiment.h"
#include "routing/config/words.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace routing {

enum class LeakTask { coin_flips, secret };
constexpr auto words_of(LeakTask) {
  using enum LeakTask;
  return std::to_array<Word<LeakTask>>({{coin_flips, "coin flips"}, {secret, "secret"}});
}

// Lowest nats that a causal model can reach: ln 2, ln 15.
double entropy_floor(LeakTask task);

struct LeakTaskSizes {
  std::int64_t tokens = 32;  // of a sequence; at least 8
  std::int64_t clusters = 4;
  std::int64_t window = 8;
  std::int64_t width = 32;
  std::int64_t batch_size = 32;
  std::int64_t steps = 1000;
  double learning_rate = 3e-3;
  std::int64_t held_out = 2048;  // fresh sequences
};

struct LeakTaskOptions {
  LeakTask task = LeakTask::secret;
  LeakTaskSizes sizes = {};
  std::uint64_t seed = 1;  // of weights and of all sequences
  std::function<void(std::int64_t step, std::int64_t steps)> progress = {};
};

// What an audit trains: coin flips over 32 tokens, the secret over 32 and over 128. The sizes were found by trying
// routing.selection = balanced, so that its leak shows within half a minute on one core (docs/audit.md has all
// figures).
struct LeakTaskCase {
  LeakTask task = LeakTask::secret;
  LeakTaskSizes sizes = {};
};
const std::vector<LeakTaskCase>& audit_tasks();

// Two layers of four heads, two of which follow the audited content pattern with all its choices (selection, sharing,
// scale, merge, relative positions, centroids); the other two are local with a small window, as are norms and the
// feed-forward layer. Only sizes, data and the optimiser are the task's own. Dropout is off.
ExperimentConfig leak_task_config(const ExperimentConfig& audited, const LeakTaskOptions& options);

// Sequences first … first + rows - 1 of a stream: int64 [rows, tokens]. Training and held-out sequences are of
// different parts.
enum class LeakTaskPart { training, held_out };
struct LeakTaskBatch {
  at::Tensor tokens;
  std::vector<std::int64_t> scored = {};  // secret: the place of the secret in each row; coin flips: empty, all count
};
LeakTaskBatch leak_task_batch(const LeakTaskOptions& options, LeakTaskPart part, std::int64_t first, std::int64_t rows);

struct LeakTaskResult {
  LeakTask task = LeakTask::secret;
  LeakTaskSizes sizes = {};
  std::uint64_t seed = 1;
  double nats = 0.0;        // mean over held-out sequences: a token, or of the secret
  double half_width = 0.0;  // of the 95 % interval, by sequence
  double floor = 0.0;
  double seconds = 0.0;
  bool leaks() const { return nats + half_width < floor; }
};

// Trains and scores. The result is a function of configuration and options, whatever the number of threads.
LeakTaskResult run_leak_task(const ExperimentConfig& audited, const LeakTaskOptions& options);

}  // namespace routing
