// Which tokens of a text could be found by looking back? What stands before a target may have occurred before; what
// followed it then is a good guess. With c tokens of context, the distance of the target at position i of a window is
//
//   d_i = i - j,   j < i the last position with t_{j-c} … t_{j-1} = t_{i-c} … t_{i-1}
//
// so the guess is t_j, d_i tokens back. Targets fall into three classes:
//
//   near    d_i is at most the reach of the local heads, so they can carry the guess
//   far     it is farther back, in the same window: only heads that go by content can find it
//   never   there is no such j, or there are fewer than c tokens before the target
#pragma once

#include "routing/config/experiment.h"
#include "routing/config/words.h"
#include "routing/evaluation/likelihood.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace routing {

enum class Recurrence { near, far, never };
constexpr auto words_of(Recurrence) {
  using enum Recurrence;
  return std::to_array<Word<Recurrence>>({{near, "near"}, {far, "far"}, {never, "never"}});
}

// d_i of every token of a window; 0 where there is none. An InputError for a context below 1.
std::vector<std::int64_t> recurrence_distances(std::span<const std::int64_t> tokens, std::int64_t context);
Recurrence recurrence_class(std::int64_t distance, std::int64_t reach);

// How far back local heads can carry something: the sum over layers of their windows; of blocks, which read the block
// before as well, of two windows.
std::int64_t local_reach(const ExperimentConfig& config);

// 8, which say enough about bytes and values of images, or 2 words or subwords.
std::int64_t usual_context(TokenKind kind);

struct RecurrenceOptions {
  std::int64_t context = 8;
  std::int64_t reach = 0;
};

// Targets of a class in one window, and their nats.
struct TargetSum {
  std::int64_t targets = 0;
  double nats = 0.0;
};
struct WindowRecurrence {
  std::array<TargetSum, kEvery<Recurrence>.size()> classes = {};
  std::vector<TargetSum> octaves = {};  // of distances: 1, 2-3, 4-7, …; as many as the longest distance needs
  std::uint64_t tokens_hash = 0;        // of all tokens of the window: those of two models must be the same

  TargetSum all() const;
};

// Of the tokens that count. An InputError unless there are as many nats as tokens.
WindowRecurrence window_recurrence(const ScoredWindow& window, const RecurrenceOptions& options);

}  // namespace routing
