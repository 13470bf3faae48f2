// Training windows by number: the n-th batch is a function of the options and n alone, so a resumed run needs to know
// only how far it was.
#pragma once

#include "routing/data/token_view.h"

#include <cstdint>
#include <span>

namespace routing {

// The rows of a batch that one of several ranks takes: neighbours, and one more for the first rows mod ranks of them.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
RowRange rows_of_rank(std::int64_t rows, int rank, int ranks);

struct BatchOptions {
  std::int64_t batch_size = 1;
  std::int64_t sequence_length = 1;  // n, tokens per window
  std::uint64_t seed = 0;            // of crops and of the order of records
  bool contiguous = false;           // crops otherwise
  std::int64_t record_length = 0;    // tokens of an image; 0 for running text
};

// A window is n successive tokens t_0 … t_(n-1), all of them targets. The model reads them shifted right by one behind
// its start symbol, so windows do not overlap by a token and carry no input of their own.
//
// Running text
//   crops       The start of each window is uniform over 0 … tokens - n, from the stream (seed, "crops", batch, row).
//   contiguous  Row r reads its own part of the split and goes on where its window in the batch before ended. The
//               parts tile the split: each has floor(tokens / batch_size) tokens, the first tokens mod batch_size of
//               them one more. A part is a ring: after its last token comes its first, also inside a window. So p
//               successive targets of a row, where p is the size of its part, hold every token of the part exactly
//               once, and no tail is dropped.
//
// Records: the first n tokens of each. Sample number batch * batch_size + row takes every record once before any comes
// again.
//   crops       in another random order in every round, from the stream (seed, "records", round)
//   contiguous  in the order of the file
//
// The tokens must outlive the object. Safe to use from several threads.
//
// Throws  ConfigError  the split has fewer than n tokens, or, if contiguous, a part has; a record is shorter than n, or
//                      there is none
//         InputError   a negative index, spans of the wrong size, tokens that are not whole records
class TokenBatches {
 public:
  TokenBatches(TokenView split, const BatchOptions& options);

  // tokens      [batch_size, length] receives the first `length` tokens of each window: 1 … n, by its size
  // sample_ids  [batch_size] receives batch_index * batch_size + row, a name for the sample that no other has
  void fill(std::int64_t batch_index, std::span<std::int64_t> tokens, std::span<std::int64_t> sample_ids) const;
  // The same of some rows of the batch.
  void fill_rows(std::int64_t batch_index, RowRange which, std::span<std::int64_t> tokens,
                 std::span<std::int64_t> sample_ids) const;

 private:
  void fill_crop(std::int64_t batch_index, std::int64_t row, std::span<std::int64_t> window) const;
  void fill_contiguous(std::int64_t batch_index, std::int64_t row, std::span<std::int64_t> window) const;
  void fill_record(std::int64_t batch_index, std::int64_t row, std::span<std::int64_t> window) const;

  TokenView split_;
  BatchOptions options_;
};

// Where number `place` of 0 … count-1 goes in a random order that is keyed by `key`: a permutation, computed for one
// place without the others.
std::uint64_t shuffled_place(std::uint64_t place, std::uint64_t count, std::uint64_t key);

}  // namespace routing
