#include "routing/evaluation/recall_accuracy.h"

#include "routing/core/error.h"
#include "routing/distributed/totals_exchange.h"
#include "routing/evaluation/evaluation_mode.h"
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

// What sequences add up to. Nats stand apart for every sequence, 0 where another rank has it: so those of all ranks
// come together with the bits of one.
struct Sums {
  Sums(std::int64_t sequences, std::int64_t length)
      : octaves(std::bit_width(static_cast<std::uint64_t>(length))),
        counts(at::zeros({octaves, 2}, at::kLong)),
        nats(at::zeros({octaves + 2, sequences}, at::kDouble)) {}

  std::int64_t octaves;
  at::Tensor counts;  // answers and right ones
  at::Tensor nats;    // of the answers of each octave, of all tokens, of a reader with perfect memory

  double& nats_at(std::int64_t row, std::int64_t sequence) const {
    return nats.data_ptr<double>()[row * nats.size(1) + sequence];
  }
  double total(std::int64_t row) const {
    NatsSum sum;
    for (std::int64_t sequence = 0; sequence < nats.size(1); ++sequence) sum.add(nats_at(row, sequence));
    return sum.total();
  }
};

// Adds one sequence, whose best tokens and nats are those of one row.
void add_sequence(const RecallSequence& sequence, const at::Tensor& best, const at::Tensor& nats, std::int64_t number,
                  const Sums& sums) {
  NatsSum sum;
  for (std::int64_t i = 0; i < nats.numel(); ++i) sum.add(nats.data_ptr<double>()[i]);
  sums.nats_at(sums.octaves, number) = sum.total();
  sums.nats_at(sums.octaves + 1, number) = sequence.least_nats;
  for (const RecallAnswer& answer : sequence.answers) {
    const std::int64_t octave = octave_of(answer.distance);
    const auto place = static_cast<std::size_t>(answer.position);
    auto* count = sums.counts.data_ptr<std::int64_t>() + 2 * octave;
    ++count[0];
    count[1] += best.data_ptr<std::int64_t>()[place] == sequence.ids[place] ? 1 : 0;
    sums.nats_at(octave, number) += nats.data_ptr<double>()[place];
  }
}

RecallScore score_of(const Sums& sums) {
  RecallScore score{.nats = sums.total(sums.octaves), .least_nats = sums.total(sums.octaves + 1)};
  for (std::int64_t octave = 0; octave < sums.octaves; ++octave) {
    const auto* count = sums.counts.data_ptr<std::int64_t>() + 2 * octave;
    const std::int64_t from = std::int64_t{1} << octave;
    score.distances.push_back(
        {.from = from, .to = 2 * from - 1, .answers = count[0], .right = count[1], .nats = sums.total(octave)});
  }
  while (!score.distances.empty() && score.distances.back().answers == 0) score.distances.pop_back();
  return score;
}

}  // namespace

RecallScore score_recall(SequenceModel& model, const RecallTask& task, const RecallToScore& which) {
  require<InputError>(which.sequences >= 1 && which.batch_size >= 1, "scoring ", which.sequences,
                      " sequences in batches of ", which.batch_size, "; both must be at least 1");
  const at::NoGradGuard no_gradient;
  const EvaluationMode mode(model);
  const Sums sums(which.sequences, which.length);
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
      add_sequence(sequences[static_cast<std::size_t>(row)], logits[row].argmax(-1).contiguous(), nats, first + row,
                   sums);
    }
  }
  if (which.ranks != nullptr) {
    which.ranks->start_sum({sums.counts, sums.nats})->wait();
    share_evaluated_totals(*which.ranks, model);
  }
  RecallScore score = score_of(sums);
  score.chance = 1.0 / static_cast<double>(task.options().values);
  score.tokens = which.sequences * which.length;
  return score;
}

}  // namespace routing
