// What a model pays for a token by where it stands in its sequence, with intervals, and what two models pay
// differently.
//
// Positions fall into ranges that double: 0 to f - 1, f to 2f - 1, 2f to 4f - 1, …. A range has a mean of sum of bits /
// sum of tokens over the sequences that reach it. Sequences are what is independent, not tokens, so the interval is
// that of a ratio of two means over sequences (Fieller's, ratio_interval.h). Of two models on the same sequences the
// numerators are differences sequence by sequence: what makes a text hard for both cancels out.
#pragma once

#include "lab/measure/ratio_interval.h"
#include "routing/evaluation/likelihood.h"

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

// The tokens of one sequence that count, range by range.
struct SequencePositions {
  struct Range {
    std::int64_t tokens = 0;
    double nats = 0.0;
  };
  std::vector<Range> ranges = {};
  std::int64_t first_range = 0;   // positions of the first range
  std::uint64_t tokens_hash = 0;  // of all tokens: those of two models must be the same
};

// An InputError unless there are as many nats as tokens and the first range has a position.
SequencePositions sequence_positions(const ScoredWindow& window, std::int64_t first_range);

struct PositionRow {
  std::int64_t from = 0;  // both included
  std::int64_t to = 0;
  std::int64_t sequences = 0;  // that have a token there
  std::int64_t tokens = 0;
  RatioInterval bits = {};  // a token; not bounded where fewer than two sequences have any
};

// All positions, then the ranges, as far as the longest sequence goes. An InputError without tokens or for sequences
// whose first ranges differ.
std::vector<PositionRow> position_rows(std::span<const SequencePositions> sequences);

// The same rows of first - second: negative where the first is better. An InputError, which names the sequence, unless
// both are of the same tokens.
std::vector<PositionRow> position_differences(std::span<const SequencePositions> first,
                                              std::span<const SequencePositions> second);

}  // namespace routing
