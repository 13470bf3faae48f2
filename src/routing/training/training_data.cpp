#include "routing/training/training_data.h"

#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/core/random.h"
#include "routing/data/batches.h"
#include "routing/data/dataset.h"
#include "routing/data/formats.h"
#include "routing/data/sources/truncated_length.h"
#include "routing/data/tasks/recall_task.h"
#include "routing/data/tasks/sequence_tasks.h"
#include "routing/evaluation/recall_accuracy.h"
#include "routing/evaluation/target_accuracy.h"
#include "routing/evaluation/token_likelihood.h"

#include <algorithm>
#include <utility>

namespace routing {
namespace {

constexpr std::int64_t kScoredPairs = 32;  // where train.eval_tokens asks for all of an endless part

std::span<std::int64_t> numbers(at::Tensor& tensor) {
  return {tensor.data_ptr<std::int64_t>(), static_cast<std::size_t>(tensor.numel())};
}

BatchOptions batch_options(const TrainConfig& config, const DataFacts& facts) {
  return {.batch_size = config.batch_size,
          .sequence_length = config.sequence_length,
          .seed = config.seed,
          .contiguous = config.order == DataOrder::contiguous,
          .record_length = facts.record_length()};
}

class DatasetTraining : public TrainingData {
 public:
  DatasetTraining(const ExperimentConfig& config, const PrepareOptions& options)
      : data_(config.data, options),
        config_(fitted_to(config, data_.facts())),
        batches_(data_.part("train").tokens, batch_options(config_.train, data_.facts())) {
    require<ConfigError>(data_.has(config_.eval.split), "eval.split is ", config_.eval.split, ", but that part of ",
                         shown_paths(config_.data.path), " is empty; choose another eval.split or data.split");
    const DataFacts& data = data_.facts();
    facts_ = {.kind = data.tokens,
              .description = data_.path().string() + ": " + data.format,
              .cut = data.cut,
              .missing = data.missing,
              .label = data.label(),
              .tokens = data_.part("train").tokens.size(),
              .hash = data_.checksum("train"),
              .tokenizer_hash = data.tokenizer_hash,
              .tokenizer = data_.tokenizer_path()};
    for (const auto& [name, part] : data_.parts()) {
      facts_.description +=
          ", " + std::to_string(part.tokens.size()) + " " + std::string(to_string(data.tokens)) + " in " + name;
    }
  }

  const TrainingFacts& facts() const override { return facts_; }
  const ExperimentConfig& config() const override { return config_; }

  TokenBatch batch(std::int64_t index, int rank, int ranks) const override {
    const TrainConfig& train = config_.train;
    const RowRange rows = rows_of_rank(train.batch_size, rank, ranks);
    const std::int64_t length = truncated_length(train, index);
    TokenBatch batch{.tokens = at::empty({rows.count, length}, at::kLong),
                     .sample_ids = at::empty({rows.count}, at::kLong),
                     .index = index,
                     .all_targets = train.batch_size * length};
    batches_.fill_rows(index, rows, numbers(batch.tokens), numbers(batch.sample_ids));
    return batch;
  }

  Evaluation evaluate(Learner& learner) const override {
    const TokenView tokens = data_.part(config_.eval.split).tokens;
    Likelihood result = token_likelihood(learner.model(), tokens,
                                         {.sequence_length = config_.train.sequence_length,
                                          .stride = config_.eval.stride,
                                          .batch_size = config_.eval.batch_size,
                                          .limit_tokens = std::min(config_.train.eval_tokens, tokens.size()),
                                          .record_length = data_.facts().record_length(),
                                          .precision = learner.precision(),
                                          .ranks = &learner.ranks()});
    return {
        .nats = result.nats, .tokens = result.tokens, .stride = result.stride, .routing = std::move(result.routing)};
  }

  const Tokenizer* tokenizer() const override { return data_.tokenizer(); }

 private:
  Dataset data_;
  ExperimentConfig config_;
  TokenBatches batches_;
  TrainingFacts facts_;
};

class PairTraining : public TrainingData {
 public:
  explicit PairTraining(const ExperimentConfig& config) : config_(config), pairs_(sequence_task_options(config)) {
    require<ConfigError>(config.model.encoder_layers > 0, "data.format is ", to_string(config.data.format),
                         ", which has sources, but model.encoder_layers is 0; set model.encoder_layers");
    const std::string task(to_string(config.data.format));
    facts_ = {.kind = TokenKind::words,
              .description = task + " of " + std::to_string(pairs_.options().longest) + " symbols out of " +
                             std::to_string(config.model.vocab_size - kFirstSymbol) + ", made up as they are needed",
              .hash = task,
              .tokenizer_hash = std::string(16, '0')};
  }

  const TrainingFacts& facts() const override { return facts_; }
  const ExperimentConfig& config() const override { return config_; }

  TokenBatch batch(std::int64_t index, int rank, int ranks) const override {
    const std::int64_t rows = config_.train.batch_size;
    // All of it: who weighs how much depends on everybody's lengths.
    TokenBatch batch = token_batch(pairs_.batch("train", index * rows, rows));
    batch.sample_ids = at::arange(index * rows, (index + 1) * rows, at::kLong);
    batch.index = index;
    batch.all_targets = batch.targets();
    const RowRange own = rows_of_rank(rows, rank, ranks);
    for (at::Tensor* part : {&batch.tokens, &batch.sample_ids, &batch.valid, &batch.source, &batch.source_valid}) {
      if (part->defined()) *part = part->narrow(0, own.first, own.count).contiguous();
    }
    return batch;
  }

  Evaluation evaluate(Learner& learner) const override {
    SequenceModel& model = learner.model();
    const std::int64_t of_a_pair = pairs_.options().longest + 1;
    const std::int64_t wanted = config_.train.eval_tokens / of_a_pair;
    model.take_evaluation_statistics();
    const TargetScore score =
        score_pairs(model, pairs_,
                    {.part = config_.eval.split,
                     .pairs = config_.train.eval_tokens == 0 ? kScoredPairs : std::max<std::int64_t>(1, wanted),
                     .batch_size = config_.eval.batch_size,
                     .precision = learner.precision(),
                     .ranks = &learner.ranks()});
    return {.nats = score.nats,
            .tokens = score.tokens,
            .stride = of_a_pair,
            .accuracy = score.accuracy(),
            .routing = model.take_evaluation_statistics()};
  }

 private:
  ExperimentConfig config_;
  SequencePairs pairs_;
  TrainingFacts facts_;
};

class RecallTraining : public TrainingData {
 public:
  explicit RecallTraining(const ExperimentConfig& config) : config_(config), task_(recall_options(config)) {
    const RecallOptions& options = task_.options();
    facts_ = {.kind = TokenKind::words,
              .description = "recall of facts in sequences of " + std::to_string(config.train.sequence_length) + ": " +
                             std::to_string(options.keys) + " keys, " + std::to_string(options.values) + " values, " +
                             std::to_string(options.filler) + " words of filler, made up as they are needed",
              .hash = "recall",
              // Not that of bytes: ids of keys and values are not text.
              .tokenizer_hash = hexadecimal(
                  stream_key(0, "ids of recall",
                             {static_cast<std::uint64_t>(options.keys), static_cast<std::uint64_t>(options.values),
                              static_cast<std::uint64_t>(options.filler)}))};
  }

  const TrainingFacts& facts() const override { return facts_; }
  const ExperimentConfig& config() const override { return config_; }

  // All batches have about as many tokens: what is lost in length is made up for by more sequences.
  TokenBatch batch(std::int64_t index, int rank, int ranks) const override {
    const TrainConfig& train = config_.train;
    const std::int64_t shortest = train.shortest_length > 0 ? train.shortest_length : train.sequence_length;
    const std::int64_t length = recall_length({.shortest = shortest,
                                               .longest = train.sequence_length,
                                               .batches = train.steps * train.accumulation,
                                               .seed = train.seed},
                                              index);
    const std::int64_t most_rows = train.batch_size * (train.sequence_length / shortest);
    const std::int64_t rows = train.batch_size * (train.sequence_length / length);
    const RowRange own = rows_of_rank(rows, rank, ranks);
    const std::int64_t first = index * most_rows + own.first;
    return {.tokens = recall_tokens(task_, "train", first, {own.count, length}),
            .sample_ids = at::arange(first, first + own.count, at::kLong),
            .index = index,
            .all_targets = rows * length};
  }

  Evaluation evaluate(Learner& learner) const override {
    SequenceModel& model = learner.model();
    const std::int64_t length = config_.train.sequence_length;
    model.take_evaluation_statistics();
    const RecallScore score = score_recall(
        model, task_,
        {.part = config_.eval.split,
         .sequences = config_.train.eval_tokens == 0 ? kScoredPairs
                                                     : std::max<std::int64_t>(1, config_.train.eval_tokens / length),
         .length = length,
         .batch_size = config_.eval.batch_size,
         .precision = learner.precision(),
         .ranks = &learner.ranks()});
    return {.nats = score.nats,
            .tokens = score.tokens,
            .stride = length,
            .accuracy = score.accuracy(),
            .routing = model.take_evaluation_statistics()};
  }

 private:
  ExperimentConfig config_;
  RecallTask task_;
  TrainingFacts facts_;
};

}  // namespace

std::unique_ptr<TrainingData> open_training_data(const ExperimentConfig& config, const PrepareOptions& options) {
  validate(config);
  if (config.data.format == DataFormat::recall) return std::make_unique<RecallTraining>(config);
  if (is_made_up(config.data.format)) return std::make_unique<PairTraining>(config);
  require<ConfigError>(config.model.encoder_layers == 0, "model.encoder_layers is ", config.model.encoder_layers,
                       ", but the data are not pairs; set data.format to copy or reverse, or model.encoder_layers=0");
  return std::make_unique<DatasetTraining>(config, options);
}

}  // namespace routing
