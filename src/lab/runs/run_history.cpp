#include "lab/runs/run_history.h"

#include "routing/core/error.h"
#include "routing/training/log/metrics_log.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// JSON has no NaN: null stands for it.
double number_at(const Json& line, const std::string& key) {
  return !line.contains(key) || line.at(key).is_null() ? kNone : line.at(key).get<double>();
}

// A step or a count; of the type as JSON's own errors are, which name the place.
std::int64_t count_in(const Json& value) {
  const bool is_count = value.is_number_integer() && value >= 0 && value <= std::numeric_limits<std::int64_t>::max();
  // Lists and objects by their type alone: writing them goes as deep as they nest, which a file decides.
  const std::string found = is_count ? "" : value.is_structured() ? value.type_name() : value.dump();
  if (!is_count) throw Json::type_error::create(302, "a count was expected, but found " + found, &value);
  return value.get<std::int64_t>();
}

std::optional<ScoreUnit> unit_of(const Json& line, const std::string& prefix) {
  for (const TokenKind kind : {TokenKind::bytes, TokenKind::subpixels, TokenKind::words}) {
    if (line.contains(prefix + score_unit(kind).key)) return score_unit(kind);
  }
  return std::nullopt;
}

void take_line(const Json& line, RunHistory& history) {
  history.step = count_in(line.at("step"));
  history.validity = line.value("validity", history.validity);
  history.data_label = line.value("data_label", "");
  const double seconds = number_at(line, "seconds");
  if (std::isfinite(seconds)) history.seconds = seconds;
  for (const std::string prefix : {"train_", "eval_"}) {
    if (!line.contains(prefix + "loss_nats")) continue;
    const std::optional<ScoreUnit> unit = unit_of(line, prefix);
    if (unit) history.unit = unit;
    HistoryPoint point{.step = history.step, .tokens = kNone, .seconds = seconds};
    point.value = unit ? number_at(line, prefix + unit->key) : kNone;
    if (prefix == "train_") {
      point.tokens = number_at(line, "tokens");
      if (std::isfinite(point.tokens)) history.tokens = point.tokens;
      history.training.push_back(point);
      continue;
    }
    history.evaluation.push_back(point);
    if (!line.value("best", false)) continue;
    history.best = BestEvaluation{.value = point.value,
                                  .step = point.step,
                                  .split = line.value("eval_split", ""),
                                  .tokens = line.contains("eval_tokens") ? count_in(line.at("eval_tokens")) : 0};
  }
}

// On the straight line between the neighbours, of which the first is the start of the run; behind the last, on with the
// tokens per step of the whole run.
double tokens_at(std::int64_t step, const std::vector<HistoryPoint>& training) {
  const auto after =
      std::find_if(training.begin(), training.end(), [&](const HistoryPoint& point) { return point.step >= step; });
  if (training.empty()) return kNone;
  if (after == training.end()) {
    const HistoryPoint& last = training.back();
    return last.tokens * static_cast<double>(step) / static_cast<double>(last.step);
  }
  const HistoryPoint before = after == training.begin() ? HistoryPoint() : *(after - 1);
  if (after->step == before.step) return after->tokens;
  const double share = static_cast<double>(step - before.step) / static_cast<double>(after->step - before.step);
  return before.tokens + share * (after->tokens - before.tokens);
}

}  // namespace

std::string RunHistory::labels() const {
  return data_label.empty() ? validity : validity + ", " + data_label;
}

void GrowingHistory::add(const Json& line) {
  take_line(line, history_);
  if (!line.contains("train_loss_nats")) return;
  last_loss_ = number_at(line, "train_loss_nats");
  if (!first_loss_) first_loss_ = last_loss_;
}

RunHistory GrowingHistory::history() const {
  RunHistory history = history_;
  history.diverged = first_loss_ && !(last_loss_ <= *first_loss_);
  for (HistoryPoint& point : history.evaluation) point.tokens = tokens_at(point.step, history.training);
  return history;
}

RunHistory read_run_history(const std::filesystem::path& metrics) {
  GrowingHistory history;
  const std::vector<Json> lines = read_metrics(metrics);
  try {
    for (const Json& line : lines) history.add(line);
  } catch (const nlohmann::json::exception& error) {
    throw FileError(metrics.string() + ": is not the metrics.jsonl of a run (" + error.what() +
                    "); give the folder of a run");
  }
  return history.history();
}

}  // namespace routing
