// Made-up pairs of sequences for encoder-decoders: copy a source, or give it backwards.
//
//   ids      0 start and padding, 1 end, 2 … vocab_size - 1 the symbols
//   source   n symbols, each uniform; outside of train n is `longest`. In train it is drawn from shortest … longest,
//   each
//            octave as likely as another: short pairs teach a beginner far more per second than long ones
//   target   the source (copy) or the source from its end (reverse), then the end symbol: n + 1 ids
//
// A pair is a function of the options, the part (train, valid or test) and its number. There is no end to the numbers,
// so training never sees a pair twice, and no pair of one part is a pair of another but by chance.
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace routing {

enum class SequenceTask { copy, reverse };

inline constexpr std::int64_t kEndSymbol = 1;
inline constexpr std::int64_t kFirstSymbol = 2;

struct SequenceTaskOptions {
  SequenceTask task = SequenceTask::copy;
  std::int64_t vocab_size = 64;
  std::int64_t shortest = 1;
  std::int64_t longest = 1;
  // So many successive training pairs are of one length: short batches are then cheap, and none has padding.
  std::int64_t pairs_of_a_length = 1;
  std::uint64_t seed = 1;
};

// From data.format, model.vocab_size, train.source_length, train.shortest_length (0: all of one length; otherwise a
// length a batch), train.batch_size and train.seed.
// A ConfigError unless data.format is copy or reverse.
SequenceTaskOptions sequence_task_options(const ExperimentConfig& config);

struct SequencePair {
  std::vector<std::int64_t> source;
  std::vector<std::int64_t> target;
};

// Sequences side by side, filled up after their ends with 0 to the longest of them.
struct PaddedSequences {
  std::int64_t length = 0;
  std::vector<std::int64_t> ids = {};    // [rows, length]
  std::vector<std::uint8_t> valid = {};  // [rows, length]: 1 for tokens, 0 for padding
};

struct PairBatch {
  std::int64_t rows = 0;
  PaddedSequences source = {};
  PaddedSequences target = {};
};

class SequencePairs {
 public:
  // A ConfigError for fewer than 3 ids or lengths that are not 1 <= shortest <= longest.
  explicit SequencePairs(const SequenceTaskOptions& options);

  // Throws an InputError for an unknown part or a number below 0.
  SequencePair pair(std::string_view part, std::int64_t number) const;
  // Pairs first … first + rows - 1; at least one row.
  PairBatch batch(std::string_view part, std::int64_t first, std::int64_t rows) const;

  const SequenceTaskOptions& options() const { return options_; }

 private:
  std::int64_t training_length(std::int64_t number) const;

  SequenceTaskOptions options_;
};

}  // namespace routing
