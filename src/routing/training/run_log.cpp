#include "routing/training/run_log.h"

#include "routing/core/files.h"
#include "routing/evaluation/measures.h"
#include "routing/training/log/routing_summary.h"

#include <cmath>
#include <utility>

namespace routing {

RunLog::RunLog(const RunDirectory& run, std::int64_t step, Subject subject)
    : subject_(std::move(subject)),
      folder_(run.folder()),
      first_step_(step + 1),
      clusters_file_(run.clusters_file()),
      metrics_(run.metrics_file()) {
  metrics_.cut_back_to(step);
  if (!std::filesystem::exists(clusters_file_)) return;
  clusters_.emplace(clusters_file_);
  clusters_->cut_back_to(step);
}

void RunLog::sync() {
  metrics_.sync();
  if (clusters_) clusters_->sync();
  // Logs are made when their first line comes.
  sync_folder(folder_);
}

void RunLog::add_event(const std::string& tag, double value, std::int64_t step) {
  if (!events_) events_.emplace(folder_, wall_seconds(), first_step_);
  events_->add_scalar(tag, value, step, wall_seconds());
}

void RunLog::append(nlohmann::ordered_json line) {
  line["validity"] = subject_.labels.validity;
  if (!subject_.labels.data.empty()) line["data_label"] = subject_.labels.data;
  metrics_.append(line);
  if (events_) events_->flush();
}

void RunLog::add_changes(std::int64_t step, const std::vector<ChangedKey>& changes) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::object();
  for (const ChangedKey& change : changes) keys[change.key] = {{"before", change.before}, {"now", change.now}};
  append({{"step", step}, {"changed", keys}});
}

void RunLog::add_step(const TrainerState& state, const StepResult& result, const Step& step) {
  const ScoreUnit& unit = score_unit(subject_.kind);
  const double in_unit = score(subject_.kind, step.loss_nats);
  nlohmann::ordered_json line{{"step", state.step},
                              {"train_loss_nats", step.loss_nats},
                              {"train_" + unit.key, in_unit},
                              {"learning_rate", result.learning_rate},
                              {"gradient_norm", result.gradient_norm},
                              {"auxiliary_loss", result.auxiliary_loss},
                              {"tokens", state.tokens},
                              {"tokens_per_second", step.tokens_per_second},
                              {"seconds", state.seconds}};
  if (result.reconstruction_loss) {
    line["reconstruction_loss"] = *result.reconstruction_loss;
    add_event("train/reconstruction", *result.reconstruction_loss, state.step);
  }
  if (step.traffic) {
    line["ranks"] = step.traffic->ranks;
    line["waiting_share"] = step.traffic->waiting_share;
    line["bytes_sent_per_step"] = step.traffic->bytes_sent_per_step;
  }
  add_event("train/loss", step.loss_nats, state.step);
  add_event("train/" + unit.event, in_unit, state.step);
  add_event("train/lr", result.learning_rate, state.step);
  add_event("train/grad_norm", result.gradient_norm, state.step);
  add_event("train/tokens_per_sec", step.tokens_per_second, state.step);
  for (const auto& [name, value] : routing_summary(result.routing)) {
    line["routing_" + name] = value;
    add_event("routing/" + name, value, state.step);
  }
  for (const auto& [name, value] : span_summary(result.spans)) {
    line["span_" + name] = value;
    add_event("span/" + name, value, state.step);
  }
  for (const HeadSpan& head : result.spans) {
    line["spans"][head.attention][std::to_string(head.head)] = head.span;
    add_event("span/" + head.attention + " head " + std::to_string(head.head), head.span, state.step);
  }
  append(std::move(line));
}

void RunLog::add_clusters(std::int64_t step, const std::vector<LayerStatistics>& routing) {
  nlohmann::ordered_json heads = nlohmann::ordered_json::array();
  for (const LayerStatistics& layer : routing) {
    const RoutingStatistics& statistics = layer.statistics;
    for (std::size_t head = 0; head < statistics.occupancy.size(); ++head) {
      nlohmann::ordered_json shares = nlohmann::ordered_json::array();
      for (const double share : statistics.occupancy[head]) shares.push_back(std::round(share * 1e5) / 1e5);
      heads.push_back({{"attention", layer.attention},
                       {"head", layer.first_head + static_cast<std::int64_t>(head)},
                       {"shares", std::move(shares)},
                       {"dead", statistics.dead_centroids[head]}});
    }
  }
  if (heads.empty()) return;
  if (!clusters_) clusters_.emplace(clusters_file_);
  clusters_->append({{"step", step}, {"heads", std::move(heads)}});
}

void RunLog::add_evaluation(const TrainerState& state, const Evaluation& evaluation) {
  const ScoreUnit& unit = score_unit(subject_.kind);
  const double in_unit = score(subject_.kind, state.last_eval_nats);
  nlohmann::ordered_json line{{"step", state.step},
                              {"eval_loss_nats", state.last_eval_nats},
                              {"eval_" + unit.key, in_unit},
                              {"eval_split", subject_.split},
                              {"eval_tokens", evaluation.tokens},
                              {"eval_stride", evaluation.stride},
                              {"best", state.best_step == state.step},
                              {"seconds", state.seconds}};
  if (evaluation.accuracy) {
    line["eval_accuracy"] = *evaluation.accuracy;
    add_event("val/accuracy", *evaluation.accuracy, state.step);
  }
  add_event("val/loss", state.last_eval_nats, state.step);
  add_event("val/" + unit.event, in_unit, state.step);
  for (const auto& [name, value] : routing_summary(evaluation.routing)) {
    line["eval_routing_" + name] = value;
    add_event("val_routing/" + name, value, state.step);
  }
  append(std::move(line));
}

}  // namespace routing
