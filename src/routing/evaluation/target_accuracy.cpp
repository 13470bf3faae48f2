#include "routing/evaluation/target_accuracy.h"

#include "routing/core/error.h"
#include "routing/evaluation/likelihood.h"

#include <algorithm>

namespace routing {
namespace {

at::Tensor ids_of(const PaddedSequences& sequences, std::int64_t rows) {
  at::Tensor ids = at::empty({rows, sequences.length}, at::kLong);
  std::copy(sequences.ids.begin(), sequences.ids.end(), ids.data_ptr<std::int64_t>());
  return ids;
}

at::Tensor mask_of(const PaddedSequences& sequences, std::int64_t rows) {
  if (std::find(sequences.valid.begin(), sequences.valid.end(), 0) == sequences.valid.end()) return {};
  at::Tensor mask = at::empty({rows, sequences.length}, at::kBool);
  std::copy(sequences.valid.begin(), sequences.valid.end(), mask.data_ptr<bool>());
  return mask;
}

}  // namespace

TokenBatch token_batch(const PairBatch& pairs) {
  return {.tokens = ids_of(pairs.target, pairs.rows),
          .valid = mask_of(pairs.target, pairs.rows),
          .source = ids_of(pairs.source, pairs.rows),
          .source_valid = mask_of(pairs.source, pairs.rows)};
}

TargetScore& TargetScore::operator+=(const TargetScore& other) {
  tokens += other.tokens;
  right += other.right;
  nats += other.nats;
  return *this;
}

TargetScore score_targets(EncoderDecoderImpl& model, const TokenBatch& batch, MatmulPrecision precision) {
  const at::NoGradGuard no_gradient;
  const bool was_training = model.is_training();
  model.eval();
  const at::Tensor logits = model.logits(batch, {.precision = precision});
  model.train(was_training);
  const at::Tensor nats =
      -at::log_softmax(logits.to(at::kDouble), -1).gather(2, batch.tokens.unsqueeze(2)).squeeze(2).contiguous();
  const at::Tensor hit = logits.argmax(-1).eq(batch.tokens);
  TargetScore score;
  NatsSum sum;
  for (std::int64_t row = 0; row < nats.size(0); ++row) {
    for (std::int64_t i = 0; i < nats.size(1); ++i) {
      const std::int64_t place = row * nats.size(1) + i;
      if (batch.valid.defined() && !batch.valid[row][i].item<bool>()) continue;
      ++score.tokens;
      score.right += hit.data_ptr<bool>()[place] ? 1 : 0;
      sum.add(nats.data_ptr<double>()[place]);
    }
  }
  score.nats = sum.total();
  return score;
}

TargetScore score_pairs(EncoderDecoderImpl& model, const SequencePairs& pairs, const PairsToScore& which) {
  require<InputError>(which.pairs >= 1 && which.batch_size >= 1, "scoring ", which.pairs, " pairs in batches of ",
                      which.batch_size, "; both must be at least 1");
  TargetScore score;
  for (std::int64_t first = 0; first < which.pairs; first += which.batch_size) {
    const std::int64_t rows = std::min(which.batch_size, which.pairs - first);
    score += score_targets(model, token_batch(pairs.batch(which.part, first, rows)), which.precision);
  }
  return score;
}

}  // namespace routing
