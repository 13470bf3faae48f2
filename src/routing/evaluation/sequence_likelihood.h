// The likelihood of one long sequence that is split over ranks: every token sees what it would see on one rank.
//
// Rank r reads piece r. All ranks work on the same layer at the same time; in attention each takes from the ranks
// before it the keys and values that its own queries can still read (attention/cache/sequence_pieces.h,
// docs/long-sequences.md). The nats are those of SequenceModel::loss of the whole sequence, bit for bit, for any
// number of ranks and any pieces.
//
// Models     decoder-only, float32 on the CPU, all heads such that a cache can hold them: local, strided, fixed,
//            windows of two dimensions, LSH, full, and routed by `nearest` or `threshold`. A ConfigError says what does
//            not fit, and why, on all ranks
// Memory     a rank holds activations of its piece, and of earlier pieces the keys that it reads
#pragma once

#include "routing/data/token_view.h"
#include "routing/distributed/group/rank_group.h"
#include "routing/model/model_cache.h"
#include "routing/model/sequence_model.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

struct SequenceOptions {
  // All ranks must call, with the same model, tokens and pieces; nothing means alone. Tokens, pieces and precision are
  // compared; check_same_model() does that for models.
  RankGroup* ranks = nullptr;
  // Where the pieces end, ascending, the last at the end of the sequence; nothing means even_pieces(). Ranks whose
  // pieces are empty, which end where they begin, read nothing.
  std::vector<std::int64_t> ends = {};
  MatmulPrecision precision = MatmulPrecision::fp32;
  // Takes what this rank has read, as a new sequence, if it is not null. On the last reader that is all there is, so
  // the sequence goes on from there with SequenceModel::logits_cached, whose next previous token is the last of these.
  ModelCache* cache = nullptr;
};

struct SequenceLikelihood {
  at::Tensor nats = {};          // float [tokens]: of every token of the sequence, on every rank
  double total = 0.0;            // their sum, as token_likelihood() sums a window
  std::int64_t begin = 0;        // the piece that this rank has read
  std::int64_t end = 0;          // after its last token
  std::int64_t cached = -1;      // the sequence's number in options.cache; -1 of an empty piece
  std::int64_t bytes_sent = 0;   // by this rank to others for attention, over all layers
  double waiting_seconds = 0.0;  // of this rank for others, over all layers
};

// Puts the model into evaluation mode for the time of the call.
SequenceLikelihood sequence_likelihood(SequenceModel& model, TokenView tokens, const SequenceOptions& options);

// Where pieces end that differ by one token at most, the longer ones first. Of fewer tokens than pieces the last ones
// are empty. An InputError for no tokens or no pieces.
std::vector<std::int64_t> even_pieces(std::int64_t tokens, int pieces);
// The ranks whose pieces are not empty.
std::vector<int> readers_of(std::span<const std::int64_t> ends);

}  // namespace routing
