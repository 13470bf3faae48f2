// What a run learns from and is evaluated with: the tokens of a data set, or made-up pairs for an encoder-decoder.
#pragma once

#include "routing/config/experiment.h"
#include "routing/data/prepared.h"
#include "routing/data/tokenizers/tokenizer.h"
#include "routing/training/learner.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace routing {

struct TrainingFacts {
  TokenKind kind = TokenKind::bytes;  // decides what losses are called, see measures.h
  std::string description = {};       // one line: what there is of it
  std::string cut = {};               // how train, valid and test were made; empty if the data bring them
  std::string missing = {};           // what a whole set has and this one has not; empty if it is whole
  std::string label = {};             // "partial data", or nothing
  // Of the training part, so that a run does not go on with others.
  std::int64_t tokens = 0;
  std::string hash = {};
  std::string tokenizer_hash = {};
  std::filesystem::path tokenizer = {};  // its file; empty if there is none
};

struct Evaluation {
  double nats = 0.0;  // summed
  std::int64_t tokens = 0;
  std::int64_t stride = 0;  // new tokens per window
  std::optional<double> accuracy =
      std::nullopt;  // share that got the largest logit, of targets of pairs and of answers of recall
  std::vector<LayerStatistics> routing = {};

  double nats_per_token() const { return nats / static_cast<double>(tokens); }
};

class TrainingData {
 public:
  virtual ~TrainingData() = default;
  virtual const TrainingFacts& facts() const = 0;
  // The configuration as it runs, with everything that the data decide.
  virtual const ExperimentConfig& config() const = 0;
  // Batch number `index` of the run's order, at most train.sequence_length tokens long; see train.shortest_length.
  TokenBatch batch(std::int64_t index) const { return batch(index, 0, 1); }
  // The rows of it that are one rank's: see rows_of_rank(). The ranks together take each row once.
  virtual TokenBatch batch(std::int64_t index, int rank, int ranks) const = 0;
  // The first train.eval_tokens tokens of eval.split, or all if that is 0. Spread over the learner's ranks, which must
  // all call; each gets the figures of all.
  virtual Evaluation evaluate(Learner& learner) const = 0;
  // Of text; nothing of images and of made-up tokens.
  virtual const Tokenizer* tokenizer() const { return nullptr; }
};

// By data.format: pairs for copy and reverse, facts and questions for recall, a data set otherwise. Throws a
// ConfigError or FileError for data that are not there, do not fit the model or are too few.
std::unique_ptr<TrainingData> open_training_data(const ExperimentConfig& config, const PrepareOptions& options = {});

}  // namespace routing
