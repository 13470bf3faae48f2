#include "train/training_result.h"

#include "routing/config/experiment.h"
#include "routing/evaluation/measures.h"
#include "shell/output.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string>
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

// How to go on from here.
std::string command_to_go_on(TrainingEnd end, const ResultOptions& options) {
  const TrainConfig& train = options.config.train;
  return "routing train --out " + options.run.string() + " --resume" +
         (options.ranks > 1 ? " --ranks " + std::to_string(options.ranks) : "") +
         (end == TrainingEnd::out_of_time ? " --minutes " + fixed_digits(2.0 * train.minutes, 2) : "") +
         (end == TrainingEnd::finished ? " --steps " + std::to_string(2 * train.steps) : "");
}

}  // namespace

std::string score_text(TokenKind kind, double nats_per_token) {
  const double value = score(kind, nats_per_token);
  return fixed_digits(value, value >= 100.0 ? 1 : 3) + " " + score_unit(kind).name;
}

void print_training_result(const TrainingResult& result, const ResultOptions& options) {
  const TrainerState& state = result.state;
  const ExperimentConfig& config = options.config;
  const std::string validity = validity_label(config);
  const bool evaluated = std::isfinite(state.last_eval_nats);
  const auto score_of = [&](double nats) { return score_text(options.kind, nats); };
  Report report;
  report.fact("run", options.run.string()).fact("end", end_word(result.end));
  report.line("run", options.run.string() + " (" + end_word(result.end) + ")");
  report.fact("step", state.step).fact("steps", config.train.steps).fact("tokens", state.tokens);
  report.line("step", std::to_string(state.step) + " of " + std::to_string(config.train.steps) + ", " +
                          std::to_string(state.tokens) + " tokens in " + fixed_digits(state.seconds, 0) + " s");
  report.fact("train_loss_nats", result.last_loss_nats);
  if (result.last_loss_nats > 0.0) report.line("train", score_of(result.last_loss_nats));
  report.fact("eval_loss_nats", finite_or_null(state.last_eval_nats));
  report.fact("best_eval_loss_nats", finite_or_null(state.best_eval_nats)).fact("best_step", state.best_step);
  if (evaluated) {
    report.line(config.eval.split, score_of(state.last_eval_nats) + ", best " + score_of(state.best_eval_nats) +
                                       " at step " + std::to_string(state.best_step));
  }
  report.fact("tokens_per_second", result.tokens_per_second).fact("seconds", state.seconds).fact("validity", validity);
  report.line("validity", options.data_label.empty() ? validity : validity + ", " + options.data_label);
  if (result.steps > 0) report.line("rate", fixed_digits(result.tokens_per_second, 0) + " tokens/s");
  if (options.ranks > 1) {
    const double waiting = result.waiting_seconds / std::max(1e-9, result.step_seconds);
    const double bytes =
        static_cast<double>(result.bytes_sent) / static_cast<double>(std::max<std::int64_t>(1, result.steps));
    report.fact("ranks", options.ranks).fact("waiting_share", waiting).fact("bytes_sent_per_step", bytes);
    report.line("ranks", std::to_string(options.ranks) + ", " + fixed_digits(100.0 * waiting, 1) +
                             " % of the time waiting, " + fixed_digits(bytes / (1 << 20), 2) +
                             " MiB sent per step by each");
  }
  if (evaluated) report.fact("eval_" + score_unit(options.kind).key, score(options.kind, state.last_eval_nats));
  if (!options.data_label.empty()) report.fact("data_label", options.data_label);
  const bool finished = result.end == TrainingEnd::finished;
  if (finished && result.steps == 0) report.line("nothing", "was left to do: the run is at its last step already");
  if (finished) report.line("evaluate", "routing eval " + options.run.string() + " --split test");
  if (!finished || result.steps == 0) report.line("go on", command_to_go_on(result.end, options));
  report.print(options.json, 10);
}

}  // namespace routing
