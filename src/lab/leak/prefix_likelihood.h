// What does a model's likelihood owe to the future? One token, three numbers of nats:
//
//   teacher-forced   from the pass over the whole window, as evaluation does it: later tokens are there
//   future-replaced  from a pass of the same length in which token i and all after it are other text. Nothing of the
//                    future is left but its length, so a decoder could do this too
//   prefix-only      from a pass over t_0 … t_{i-1} alone, as a decoder without a cache does it (next_logits)
//
// Token i itself is part of the future: it is the input of position i + 1. It is scored, never read.
//
//   future-replaced - teacher-forced   what the text after i tells a selection about token i: the leak
//   prefix-only - teacher-forced       the same, and what it costs that a shorter sequence is not what was trained
//
// Where a selection reads no future, teacher-forced and future-replaced are the same bits. Where it does not look at
// the length either, so is prefix-only. `random` draws its groups from all positions of a sequence, so it does look at
// the length: its future-replaced figures are equal, its prefix-only ones are not. `balanced` takes the best `window`
// tokens of each cluster from what there is: in a prefix of i tokens the windows stay as wide, so that early in the
// window nearly every token is in nearly every cluster, as in no sequence of the training.
#pragma once

#include "routing/data/token_view.h"
#include "routing/model/sequence_model.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace routing {

// Which predictions are looked at. Windows are disjoint, of n tokens, and begin at multiples of n (of images: of
// record_length); a tail is left out. Positions are spread: each window is cut into as many parts as positions are
// asked for, and one is drawn from each. All of it depends on seed and sizes only, so every model gets the same.
struct PositionSampling {
  std::int64_t sequence_length = 2048;  // n
  std::int64_t windows = 64;            // all there are, if fewer
  std::int64_t positions = 24;          // a window; all of them, if more than n
  std::uint64_t seed = 1;
  std::int64_t record_length = 0;  // of images; 0 for text
};

struct SampledPosition {
  std::int64_t window = 0;             // counted from 0 among the sampled ones
  std::int64_t begin = 0;              // first token of the window in the text
  std::int64_t position = 0;           // i, in the window
  std::int64_t replacement_begin = 0;  // of the other window, whose tokens from i on are the other future
  friend bool operator==(const SampledPosition&, const SampledPosition&) = default;
};

// By window, then by position. An InputError if the text has fewer than two windows or a number is below 1.
std::vector<SampledPosition> sample_positions(std::int64_t tokens, const PositionSampling& sampling);

struct PrefixLikelihoodOptions {
  PositionSampling sampling = {};
  // Where the pattern promises equal bits, so many samples are measured, drawn by the seed, and the rest believed if
  // all of them are equal; if one is not, all are measured.
  std::int64_t checks = 8;
  bool check_all = false;
  MatmulPrecision precision = MatmulPrecision::fp32;
  std::function<void(std::int64_t passes_done, std::int64_t passes)> progress = {};
};

struct PrefixSample {
  SampledPosition place = {};
  double teacher_forced = 0.0;  // nats
  double future_replaced = 0.0;
  double prefix_only = 0.0;
};

// How one of the other numbers compares with teacher-forced.
struct Agreement {
  bool promised = false;  // by the patterns of the model
  std::int64_t measured = 0;
  std::int64_t different = 0;  // of those measured, in any bit

  bool holds() const { return promised && different == 0; }
};

struct PrefixLikelihood {
  std::int64_t sequence_length = 0;
  std::vector<PrefixSample> samples = {};  // by window, then by position
  // Teacher-forced nats per token over all tokens of each window: one pass gives them, sampled or not.
  std::vector<double> window_nats = {};
  Agreement future_replaced = {};
  Agreement prefix_only = {};
};

// Puts the model into evaluation mode for the time of the call. Bits do not depend on threads.
PrefixLikelihood prefix_likelihood(SequenceModel& model, TokenView tokens, const PrefixLikelihoodOptions& options);

}  // namespace routing
