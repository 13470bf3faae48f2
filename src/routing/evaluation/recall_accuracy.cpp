#include "routing/evaluation/recall_accuracy.h"

#include "routing/core/error.h"
#include "routing/distributed/totals_exchange.h"
#include "routing/evaluation/likelihood.h"

#include <algorithm>
#include <bit>

namespace routing {

std::int64_t octave_of(std::int64_t distance) {
  require<InputError>(distance >= 1, "octave of distance ", distance, ", but a fact stands at least 1 token back");
  return std::bit_width(static_cast<std::uint64_t>(distance)) - 1;
}

std::int64_t RecallScore::answers() const {
  std::int64_t sum = 0;
  for (const DistanceScore& score : distances) sum += score.answers;
  return sum;
}

double RecallScore::accuracy(std::int64_t beyond) const {
  DistanceScore all;
  for (const DistanceScore& score : distances) {
    if (score.from < beyond) continue;
    all.answers += score.answers;
    all.right += score.right;
  }
  return all.accuracy();
}

at::Tensor recall_tokens(const RecallTask& task, std::string_view part, std::int64_t first, at::IntArrayRef shape,
                         std::vector<RecallSequence>* sequences) {
  at::Tensor tokens = at::empty(shape, at::kLong);
  auto* row = tokens.data_ptr<std::int64_t>();
  for (std::int64_t number = first; number < first + shape[0]; ++number) {
    RecallSequence sequence = task.sequence(part, number, shape[1]);
    row = std::copy(sequence.ids.begin(), sequence.ids.end(), row);
    if (sequences != nullptr) sequences->push_back(std::move(sequence));
  }
  return tokens;
}

namespace {

// Adds the answers of one sequence, whose logits and nats are those of one row.
void add_answers(const RecallSequence& sequence, const at::Tensor& best, const at::Tensor& nats, RecallScore& score) {
  for (const RecallAnswer& answer : sequence.answers) {
    const auto octave = static_cast<std::size_t>(octave_of(answer.distance));
    while (score.distances.size() <= octave) {
      const std::int64_t from = std::int64_t{1} << score.distances.size();
      score.distances.push_back({.from = from, .to = 2 * from - 1});
    }
    DistanceScore& bin = score.distances[octave];
    const auto place = static_cast<std::size_t>(answer.position);
    ++bin.answers;
    bin.right += best.data_ptr<std::int64_t>()[place] == sequence.ids[place] ? 1 : 0;
    bin.nats += nats.data_ptr<double>()[place];
  }
}

// The score of all ranks on each. Nats of all tokens are those of `sequence_nats`, added in the order of sequences.
void share_score(RankGroup& ranks, const at::Tensor& sequence_nats, std::int64_t length, RecallScore& score) {
  const auto octaves = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(length)));
  while (static_cast<std::int64_t>(score.distances.size()) < octaves) {
    const std::int64_t from = std::int64_t{1} << score.distances.size();
    score.distances.push_back({.from = from, .to = 2 * from - 1});
  }
  const at::Tensor counts = at::zeros({octaves, 2}, at::kLong);
  const at::Tensor sums = at::zeros({octaves + 1}, at::kDouble);
  auto* count = counts.data_ptr<std::int64_t>();
  auto* sum = sums.data_ptr<double>();
  for (const DistanceScore& bin : score.distances) {
    *count++ = bin.answers;
    *count++ = bin.right;
    *sum++ = bin.nats;
  }
  *sum = score.least_nats;
  for (const at::Tensor& tensor : {counts, sums, sequence_nats}) ranks.sum(tensor);
  for (std::size_t i = 0; i < score.distances.size(); ++i) {
    score.distances[i].answers = counts.data_ptr<std::int64_t>()[2 * i];
    score.distances[i].right = counts.data_ptr<std::int64_t>()[2 * i + 1];
    score.distances[i].nats = sums.data_ptr<double>()[i];
  }
  score.least_nats = sums.data_ptr<double>()[octaves];
  while (!score.distances.empty() && score.distances.back().answers == 0) score.distances.pop_back();
}

}  // namespace

RecallScore score_recall(TransformerImpl& model, const RecallTask& task, const RecallToScore& which) {
  require<InputError>(which.sequences >= 1 && which.batch_size >= 1, "scoring ", which.sequences,
                      " sequences in batches of ", which.batch_size, "; both must be at least 1");
  const at::NoGradGuard no_gradient;
  const bool was_training = model.is_training();
  model.eval();
  RecallScore score{.chance = 1.0 / static_cast<double>(task.options().values)};
  const at::Tensor sequence_nats = at::zeros({which.sequences}, at::kDouble);
  for (std::int64_t first = 0; first < which.sequences; first += which.batch_size) {
    const std::int64_t batch = first / which.batch_size;
    if (which.ranks != nullptr && batch % which.ranks->size() != which.ranks->rank()) continue;
    const std::int64_t rows = std::min(which.batch_size, which.sequences - first);
    std::vector<RecallSequence> sequences;
    const at::Tensor tokens = recall_tokens(task, which.part, first, {rows, which.length}, &sequences);
    const at::Tensor logits = model.logits(tokens, {.precision = which.precision});
    for (std::int64_t row = 0; row < rows; ++row) {
      const at::Tensor nats =
          -at::log_softmax(logits[row].to(at::kDouble), -1).gather(1, tokens[row].unsqueeze(1)).squeeze(1).contiguous();
      NatsSum sum;
      for (std::int64_t i = 0; i < which.length; ++i) sum.add(nats.data_ptr<double>()[i]);
      sequence_nats.data_ptr<double>()[first + row] = sum.total();
      const RecallSequence& sequence = sequences[static_cast<std::size_t>(row)];
      add_answers(sequence, logits[row].argmax(-1).contiguous(), nats, score);
      score.least_nats += sequence.least_nats;
    }
  }
  model.train(was_training);
  if (which.ranks != nullptr) {
    share_score(*which.ranks, sequence_nats, which.length, score);
    share_evaluated_totals(*which.ranks, model);
  }
  NatsSum sum;
  for (std::int64_t i = 0; i < which.sequences; ++i) sum.add(sequence_nats.data_ptr<double>()[i]);
  score.nats = sum.total();
  score.tokens = which.sequences * which.length;
  return score;
}

}  // namespace routing
