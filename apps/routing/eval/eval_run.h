// A trained model on its data, or on others: what `routing eval` does with each run.
#pragma once

#include "eval/eval_options.h"
#include "routing/data/dataset.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/transformer.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace routing {

class TrainingDisplay;

// Of what tokens of this kind cost: "bits/byte".
std::string unit_of(TokenKind kind);

// Where no part is asked for: test of the run's own data, and of others that bring their parts; all of others that come
// in one piece, because no training has seen any of it.
std::string usual_split(const EvalOptions& options, const ExperimentConfig& config, const std::filesystem::path& model);

// Data that come in one piece are a training part.
std::string part_name(const EvalOptions& options);

struct EvalRun {
  std::filesystem::path path = {};
  Transformer model = nullptr;
  std::unique_ptr<Dataset> data = nullptr;
  RankGroup* ranks = nullptr;  // over which windows are split

  const ExperimentConfig& config() const { return model->config(); }
};

// One of the ranks of an evaluation; of one process there is no group.
struct EvalRank {
  RankGroup* group = nullptr;
  int on_machine = 0;  // rank 0 of a machine prepares the data for the others there
};

// Throws  ConfigError  no data are named, or those have other tokens or sizes than the model
//         FileError    no model, or as Dataset
EvalRun open_eval_run(const EvalOptions& options, const std::filesystem::path& model, TrainingDisplay& display,
                      const EvalRank& rank = {});

// Tokens of the part that is evaluated, as far as --limit-tokens lets them be read.
std::int64_t tokens_to_read(const EvalOptions& options, const EvalRun& run);

// How windows are cut for a run: as the options say, or as it was trained.
LikelihoodOptions eval_windows(const EvalOptions& options, const EvalRun& run);

// `scored`, if not empty, is told of every window.
Likelihood evaluate(const EvalOptions& options, const EvalRun& run, TrainingDisplay& display,
                    const std::function<void(const ScoredWindow&)>& scored);

}  // namespace routing
