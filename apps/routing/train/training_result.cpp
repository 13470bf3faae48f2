#include "train/training_result.h"

#include "routing/config/experiment.h"
#include "routing/evaluation/measures.h"
#include "shell/output.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

const char* end_word(TrainingEnd end) {
  switch (end) {
    case TrainingEnd::finished:
      return "finished";
    case TrainingEnd::out_of_time:
      return "out of time";
    case TrainingEnd::interrupted:
      return "interrupted";
  }
  return "";
}

nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

double bytes_per_step(const TrainingResult& result) {
  return static_cast<double>(result.bytes_sent) / static_cast<double>(std::max<std::int64_t>(1, result.steps));
}

void print_as_json(const TrainingResult& result, const ResultOptions& options) {
  const TrainerState& state = result.state;
  nlohmann::ordered_json object{{"run", options.run.string()},
                                {"end", end_word(result.end)},
                                {"step", state.step},
                                {"steps", options.config.train.steps},
                                {"tokens", state.tokens},
                                {"train_loss_nats", result.last_loss_nats},
                                {"eval_loss_nats", finite_or_null(state.last_eval_nats)},
                                {"best_eval_loss_nats", finite_or_null(state.best_eval_nats)},
                                {"best_step", state.best_step},
                                {"tokens_per_second", result.tokens_per_second},
                                {"seconds", state.seconds},
                                {"validity", validity_label(options.config)}};
  if (options.ranks > 1) {
    object["ranks"] = options.ranks;
    object["waiting_share"] = result.waiting_seconds / std::max(1e-9, result.step_seconds);
    object["bytes_sent_per_step"] = bytes_per_step(result);
  }
  const ScoreUnit& unit = score_unit(options.kind);
  if (std::isfinite(state.last_eval_nats)) object["eval_" + unit.key] = score(options.kind, state.last_eval_nats);
  if (!options.data_label.empty()) object["data_label"] = options.data_label;
  std::cout << object << "\n";
}

}  // namespace

std::string score_text(TokenKind kind, double nats_per_token) {
  const double value = score(kind, nats_per_token);
  return fixed_digits(value, value >= 100.0 ? 1 : 3) + " " + score_unit(kind).name;
}

void print_training_result(const TrainingResult& result, const ResultOptions& options) {
  if (options.json) {
    print_as_json(result, options);
    return;
  }
  const TrainerState& state = result.state;
  std::vector<std::pair<std::string, std::string>> lines{
      {"run", options.run.string() + " (" + end_word(result.end) + ")"},
      {"step", std::to_string(state.step) + " of " + std::to_string(options.config.train.steps) + ", " +
                   std::to_string(state.tokens) + " tokens in " + fixed_digits(state.seconds, 0) + " s"}};
  if (result.last_loss_nats > 0.0) lines.emplace_back("train", score_text(options.kind, result.last_loss_nats));
  if (std::isfinite(state.last_eval_nats)) {
    lines.emplace_back(options.config.eval.split, score_text(options.kind, state.last_eval_nats) + ", best " +
                                                      score_text(options.kind, state.best_eval_nats) + " at step " +
                                                      std::to_string(state.best_step));
  }
  const std::string validity = validity_label(options.config);
  lines.emplace_back("validity", options.data_label.empty() ? validity : validity + ", " + options.data_label);
  lines.emplace_back("rate", fixed_digits(result.tokens_per_second, 0) + " tokens/s");
  if (options.ranks > 1) {
    lines.emplace_back("ranks",
                       std::to_string(options.ranks) + ", " +
                           fixed_digits(100.0 * result.waiting_seconds / std::max(1e-9, result.step_seconds), 1) +
                           " % of the time waiting, " + fixed_digits(bytes_per_step(result) / (1 << 20), 2) +
                           " MiB sent per step by each");
  }
  const std::string ranks = options.ranks > 1 ? " --ranks " + std::to_string(options.ranks) : "";
  if (result.end == TrainingEnd::interrupted) {
    lines.emplace_back("go on", "routing train --out " + options.run.string() + " --resume auto" + ranks);
  } else if (result.end == TrainingEnd::out_of_time) {
    lines.emplace_back("go on", "routing train --out " + options.run.string() + " --resume auto" + ranks +
                                    " --minutes " + fixed_digits(2.0 * options.config.train.minutes, 2));
  } else {
    lines.emplace_back("evaluate", "routing eval " + options.run.string() + " --split test");
  }
  print_pairs(lines, 10);
}

}  // namespace routing
