// Does a prediction depend on tokens that come later?
//
// Row i of a model's logits predicts token i, so it may depend on tokens 0 … i-1 only. Change tokens c, c+1, … of a
// sequence: rows 0 … c must stay as they were, bit for bit. Nothing is assumed about how the logits are made; only
// what goes in and what comes out is looked at.
//
// Bit for bit, without a tolerance: what our kernels compute for a row does not depend on its neighbours, so a causal
// model has no reason to differ, and a leak may be as small as it likes.
#pragma once

#include "routing/config/words.h"

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace routing {

// int64 [batch, n] -> float [batch, n, vocabulary]; row i of a sequence predicts its token i.
using LogitsFunction = std::function<at::Tensor(const at::Tensor& tokens)>;

// What becomes of tokens c, c+1, ….
enum class FutureChange {
  drawn,     // each becomes another id, drawn uniformly
  reversed,  // they stand backwards
  replaced,  // they become those of another sequence of the data
  last,      // only the last token that is read at all, number n-2, becomes another id
};
constexpr auto words_of(FutureChange) {
  using enum FutureChange;
  return std::to_array<Word<FutureChange>>(
      {{drawn, "drawn"}, {reversed, "reversed"}, {replaced, "replaced"}, {last, "last"}});
}

struct PrefixInvarianceOptions {
  std::int64_t vocab_size = 256;
  std::int64_t positions = 32;  // how many c; half of them evenly spread, half drawn; no more than there are
  std::uint64_t seed = 1;
  std::int64_t batch_size = 4;  // sequences in one pass; every pass has exactly so many
  std::function<void(std::int64_t pass, std::int64_t passes)> progress = {};
};

// One change and what it did to rows 0 … c.
struct PrefixChange {
  FutureChange change = FutureChange::drawn;
  std::int64_t sequence = 0;
  std::int64_t first_changed = 0;  // c
  std::int64_t rows_changed = 0;   // rows of 0 … c with other bits
  std::int64_t first_row = -1;     // the first of them
  double largest = 0.0;            // largest absolute change of a logit there; infinity if one became NaN
};

struct PrefixReport {
  std::int64_t tokens = 0;  // of a sequence
  std::int64_t sequences = 0;
  std::int64_t positions = 0;              // c that were tried
  std::vector<PrefixChange> changes = {};  // those that changed at least one token

  bool causal() const;
  double largest() const;
  std::int64_t rows_checked() const;
  std::int64_t rows_changed() const;
  // The change that shows the leak best: the one with the most rows changed; null if causal.
  const PrefixChange* worst() const;
};

// tokens int64 [sequences, n] with at least two tokens; at least two sequences if `replaced` is to be tried. The c are
// dealt out to the sequences in turn.
//
// A pass over changed sequences is compared with a pass over as many copies of the unchanged one: whatever a sequence
// learns from the rest of its batch shows, too.
//
// Throws an InputError where there is nothing to check: fewer than two tokens or two ids.
PrefixReport check_prefix_invariance(const LogitsFunction& logits, const at::Tensor& tokens,
                                     const PrefixInvarianceOptions& options);

// The sequence with tokens from `first` on changed; `other` [n] is for `replaced`. int64 [n] -> [n].
struct FutureDraw {
  FutureChange change = FutureChange::drawn;
  std::int64_t first = 0;
  std::int64_t vocab_size = 256;
  std::uint64_t seed = 1;
  at::Tensor other = {};
};
at::Tensor with_other_future(const at::Tensor& sequence, const FutureDraw& draw);

// Ascending positions 0 … tokens-2.
std::vector<std::int64_t> cut_positions(std::int64_t tokens, std::int64_t count, std::uint64_t seed);

// The largest difference of values whose bits differ; infinite where one of them is not a number.
double largest_change(const float* before, const float* after, std::int64_t count);

}  // namespace routing
