// How many target tokens an encoder-decoder gets right when it has read the true ones before (teacher forcing).
#pragma once

#include "routing/data/tasks/sequence_tasks.h"
#include "routing/distributed/group/rank_group.h"
#include "routing/evaluation/likelihood.h"
#include "routing/model/sequence_model.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace routing {

// The pairs as tensors; masks only where there is padding.
TokenBatch token_batch(const PairBatch& pairs);

struct TargetScore {
  std::int64_t tokens = 0;  // without padding
  std::int64_t right = 0;   // where the largest logit is the target's
  double nats = 0.0;        // summed
  double accuracy() const { return tokens == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(tokens); }
  double nats_per_token() const { return tokens == 0 ? 0.0 : nats / static_cast<double>(tokens); }
  TargetScore& operator+=(const TargetScore& other);
};

// Of one batch, in evaluation mode; the model is left in the mode it was in. `scored`, if not empty, is told of every
// row: its targets, what each cost, and its source, all without padding.
TargetScore score_targets(SequenceModel& model, const TokenBatch& batch, MatmulPrecision precision,
                          const std::function<void(const ScoredWindow&)>& scored = {});

struct PairsToScore {
  std::string_view part = "valid";
  std::int64_t pairs = 32;  // the first so many
  std::int64_t batch_size = 4;
  MatmulPrecision precision = MatmulPrecision::fp32;
  RankGroup* ranks = nullptr;  // batches go round the ranks, and each gets the score of all; nothing means alone
  // As in score_targets(), pair after pair; of several ranks each is told of its own.
  std::function<void(const ScoredWindow&)> scored = {};
};
TargetScore score_pairs(SequenceModel& model, const SequencePairs& pairs, const PairsToScore& which);

}  // namespace routing
