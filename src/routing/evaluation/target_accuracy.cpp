#include "routing/evaluation/target_accuracy.h"

#include "routing/core/error.h"
#include "routing/distributed/totals_exchange.h"
#include "routing/evaluation/evaluation_mode.h"
#include "routing/evaluation/likelihood.h"

#include <algorithm>
#include <vector>

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

// The real tokens of a row.
std::vector<std::int64_t> real_tokens(const at::Tensor& ids, const at::Tensor& valid, std::int64_t row) {
  const at::Tensor real = valid.defined() ? ids[row].masked_select(valid[row]) : ids[row].contiguous();
  return {real.data_ptr<std::int64_t>(), real.data_ptr<std::int64_t>() + real.numel()};
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

TargetScore score_targets(SequenceModel& model, const TokenBatch& batch, MatmulPrecision precision,
                          const std::function<void(const ScoredWindow&)>& scored) {
  const at::NoGradGuard no_gradient;
  const EvaluationMode mode(model);
  const at::Tensor logits = model.logits(batch, {.precision = precision});
  const at::Tensor nats =
      -at::log_softmax(logits.to(at::kDouble), -1).gather(2, batch.tokens.unsqueeze(2)).squeeze(2).contiguous();
  const at::Tensor hit = logits.argmax(-1).eq(batch.tokens);
  TargetScore score;
  NatsSum sum;
  for (std::int64_t row = 0; row < nats.size(0); ++row) {
    std::vector<float> of_row;
    for (std::int64_t i = 0; i < nats.size(1); ++i) {
      const std::int64_t place = row * nats.size(1) + i;
      if (batch.valid.defined() && !batch.valid[row][i].item<bool>()) continue;
      ++score.tokens;
      score.right += hit.data_ptr<bool>()[place] ? 1 : 0;
      sum.add(nats.data_ptr<double>()[place]);
      of_row.push_back(static_cast<float>(nats.data_ptr<double>()[place]));
    }
    if (!scored) continue;
    const std::vector<std::int64_t> tokens = real_tokens(batch.tokens, batch.valid, row);
    std::vector<std::int64_t> source;
    if (batch.source.defined()) source = real_tokens(batch.source, batch.source_valid, row);
    scored({.tokens = tokens, .nats = of_row, .source = source});
  }
  score.nats = sum.total();
  return score;
}

TargetScore score_pairs(SequenceModel& model, const SequencePairs& pairs, const PairsToScore& which) {
  require<InputError>(which.pairs >= 1 && which.batch_size >= 1, "scoring ", which.pairs, " pairs in batches of ",
                      which.batch_size, "; both must be at least 1");
  const std::int64_t batches = (which.pairs + which.batch_size - 1) / which.batch_size;
  // Of each batch, 0 for those of other ranks: adding zeros changes nothing.
  const at::Tensor counts = at::zeros({batches, 2}, at::kLong);
  const at::Tensor nats = at::zeros({batches}, at::kDouble);
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    if (which.ranks != nullptr && batch % which.ranks->size() != which.ranks->rank()) continue;
    const std::int64_t first = batch * which.batch_size;
    const std::int64_t rows = std::min(which.batch_size, which.pairs - first);
    const TargetScore own =
        score_targets(model, token_batch(pairs.batch(which.part, first, rows)), which.precision, which.scored);
    counts.data_ptr<std::int64_t>()[2 * batch] = own.tokens;
    counts.data_ptr<std::int64_t>()[2 * batch + 1] = own.right;
    nats.data_ptr<double>()[batch] = own.nats;
  }
  if (which.ranks != nullptr) {
    which.ranks->sum(counts);
    which.ranks->sum(nats);
    share_evaluated_totals(*which.ranks, model);
  }
  TargetScore score;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    score += {.tokens = counts.data_ptr<std::int64_t>()[2 * batch],
              .right = counts.data_ptr<std::int64_t>()[2 * batch + 1],
              .nats = nats.data_ptr<double>()[batch]};
  }
  return score;
}

}  // namespace routing
