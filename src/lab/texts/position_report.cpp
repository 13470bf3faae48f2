#include "lab/texts/position_report.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace routing {
namespace {

using PartOfSequence = std::function<SequencePositions::Range(const SequencePositions&)>;

// Whose nats are compared, sequence by sequence; without others these count as they are.
struct Sides {
  std::span<const SequencePositions> sequences;
  std::span<const SequencePositions> others;
};

PositionRow position_row(const Sides& sides, PositionRow row, const PartOfSequence& part) {
  std::vector<double> numerators;
  std::vector<double> tokens;
  for (std::size_t i = 0; i < sides.sequences.size(); ++i) {
    const SequencePositions::Range range = part(sides.sequences[i]);
    if (range.tokens == 0) continue;
    const double other = sides.others.empty() ? 0.0 : part(sides.others[i]).nats;
    numerators.push_back(bits(range.nats - other));
    tokens.push_back(static_cast<double>(range.tokens));
    row.tokens += range.tokens;
    ++row.sequences;
  }
  if (row.sequences > 0) row.bits = ratio_interval(numerators, tokens);
  return row;
}

SequencePositions::Range everything(const SequencePositions& sequence) {
  SequencePositions::Range all;
  for (const SequencePositions::Range& range : sequence.ranges) {
    all.tokens += range.tokens;
    all.nats += range.nats;
  }
  return all;
}

std::vector<PositionRow> rows_of_positions(const Sides& sides) {
  std::size_t ranges = 0;
  for (const SequencePositions& sequence : sides.sequences) {
    ranges = std::max(ranges, sequence.ranges.size());
    require<InputError>(sequence.first_range == sides.sequences.front().first_range, "positions: first ranges of ",
                        sides.sequences.front().first_range, " and of ", sequence.first_range,
                        " positions; take one for all sequences");
  }
  std::vector<PositionRow> rows{position_row(sides, {}, everything)};
  require<InputError>(rows[0].tokens > 0, "positions: ", sides.sequences.size(),
                      " sequences without a token; score at least 1");
  const std::int64_t first = sides.sequences.front().first_range;
  for (std::size_t number = 0; number < ranges; ++number) {
    const std::int64_t end = first << number;
    rows.push_back(
        position_row(sides, {.from = number == 0 ? 0 : end / 2, .to = end - 1}, [&](const SequencePositions& sequence) {
          return number < sequence.ranges.size() ? sequence.ranges[number] : SequencePositions::Range{};
        }));
  }
  rows[0].to = rows.back().to;
  return rows;
}

}  // namespace

SequencePositions sequence_positions(const ScoredWindow& window, std::int64_t first_range) {
  require<InputError>(window.tokens.size() == window.nats.size(), "positions: ", window.tokens.size(),
                      " tokens, but the nats of ", window.nats.size(), "; give one for each");
  require<InputError>(first_range >= 1, "positions: a first range of ", first_range, " positions; take at least 1");
  SequencePositions sequence{.first_range = first_range, .tokens_hash = xxhash64(std::as_bytes(window.tokens))};
  const auto size = static_cast<std::int64_t>(window.tokens.size());
  for (std::int64_t begin = 0, end = first_range; begin < size; begin = end, end *= 2) {
    NatsSum sum;
    for (std::int64_t position = std::max(begin, window.scored_from); position < std::min(end, size); ++position) {
      sum.add(static_cast<double>(window.nats[static_cast<std::size_t>(position)]));
    }
    sequence.ranges.push_back({.tokens = sum.tokens(), .nats = sum.total()});
  }
  return sequence;
}

std::vector<PositionRow> position_rows(std::span<const SequencePositions> sequences) {
  return rows_of_positions({.sequences = sequences, .others = {}});
}

std::vector<PositionRow> position_differences(std::span<const SequencePositions> first,
                                              std::span<const SequencePositions> second) {
  require<InputError>(first.size() == second.size(), "positions: ", first.size(), " sequences against ", second.size(),
                      "; compare models on the same");
  for (std::size_t i = 0; i < first.size(); ++i) {
    require<InputError>(
        first[i].tokens_hash == second[i].tokens_hash && first[i].ranges.size() == second[i].ranges.size() &&
            everything(first[i]).tokens == everything(second[i]).tokens,
        "positions: sequence ", i, " has other tokens for the second model; compare models on the same");
  }
  return rows_of_positions({.sequences = first, .others = second});
}

}  // namespace routing
