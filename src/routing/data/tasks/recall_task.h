// A made-up text that can only be continued by remembering: facts are stated once, and asked for up to thousands of
// tokens later, amid filler.
//
//   fact       FACT value key        a key that this sequence has not named yet, any value; FACT key value with
//                                    data.key_first
//   question   ASK  key value        a fact that was stated and not asked for yet, each as likely; the value is known
//   filler     the words of a phrase that goes round and round, one at a time; it begins anywhere
//
// After each of these the next is drawn: a fact, a question, or the next word of the filler. A fact or question that
// does not fit any more is cut off. Long sequences do not have more facts than there are keys for, but more filler:
// with
//
//   r(n) = min(1, kKeysUsed * keys / (kFactRate * n))
//
// facts come with probability kFactRate * r(n) and questions with kAskRate * r(n), as long as there is a key left or a
// fact open; otherwise their share goes to the filler.
//
// Everything but the values of questions is as random to a reader with perfect memory as it was when it was drawn, so
// the least possible loss is known exactly: the nats of those draws. The value stands before its key so that a reader
// that finds the key finds the value right before it. With the key first, what follows the key in the fact is what
// follows it in the question: a reader has to find the place after an earlier one with the same key.
//
//   ids   0 … filler-1 the filler, then FACT, ASK, the values, the keys
//
// A sequence is a function of the options, the part (train, valid or test), its number and its length; those of valid
// and test are the same for every seed.
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace routing {

inline constexpr double kFactRate = 0.12;
inline constexpr double kAskRate = 0.10;
inline constexpr double kKeysUsed = 0.7;

struct RecallOptions {
  std::int64_t keys = 192;
  std::int64_t values = 32;
  std::int64_t filler = 16;
  std::uint64_t seed = 1;
  bool key_first = false;
};

// From data.recall_*, data.key_first and train.seed; a ConfigError unless data.format is recall.
RecallOptions recall_options(const ExperimentConfig& config);

// A token that only memory tells.
struct RecallAnswer {
  std::int64_t position = 0;  // of the value that answers; its key stands right before it
  std::int64_t distance = 0;  // from that key back to the same key in its fact
};

struct RecallSequence {
  std::vector<std::int64_t> ids = {};
  std::vector<RecallAnswer> answers = {};  // ascending
  double least_nats = 0.0;                 // of all tokens together, for a reader with perfect memory
};

class RecallTask {
 public:
  // A ConfigError for fewer than 2 keys or values or no filler.
  explicit RecallTask(const RecallOptions& options);

  // Throws an InputError for an unknown part, a number below 0 or a length below 1.
  RecallSequence sequence(std::string_view part, std::int64_t number, std::int64_t length) const;

  // How many ids there are, and where each kind begins.
  std::int64_t vocab_size() const { return first_key() + options_.keys; }
  std::int64_t fact_mark() const { return options_.filler; }
  std::int64_t ask_mark() const { return options_.filler + 1; }
  std::int64_t first_value() const { return options_.filler + 2; }
  std::int64_t first_key() const { return first_value() + options_.values; }

  const RecallOptions& options() const { return options_; }

 private:
  RecallOptions options_;
};

// The lengths of training batches grow: to look a key up has to be learned once, and short sequences, which are full of
// questions, teach it many times faster than long ones. With p the share of the training that is over,
//
//   L(p) = 2 shortest                 until p = 0.4
//          longest                    from p = 0.8 on, and in between growing by the same factor every step
//
// and a batch has a length from max(shortest, L(p) / 4) to L(p), each octave as likely as another.
struct RecallLengths {
  std::int64_t shortest = 64;
  std::int64_t longest = 4096;
  std::int64_t batches = 1000;  // of the whole training
  std::uint64_t seed = 1;
};
// Throws a ConfigError unless 1 <= shortest <= longest and there is a batch.
std::int64_t recall_length(const RecallLengths& lengths, std::int64_t batch);

}  // namespace routing
