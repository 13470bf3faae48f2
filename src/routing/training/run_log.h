// What a run measures, as rank 0 writes it down: lines of metrics.jsonl, the same numbers for TensorBoard, and what
// clusters were given in clusters.jsonl, which there is only where heads are routed.
#pragma once

#include "routing/config/experiment.h"
#include "routing/training/checkpoint.h"
#include "routing/training/learner.h"
#include "routing/training/log/event_file.h"
#include "routing/training/log/metrics_log.h"
#include "routing/training/run_directory.h"
#include "routing/training/training_data.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace routing {

// What losses of a run are worth.
struct RunLabels {
  std::string validity = {};  // validity_label()
  std::string data = {};      // "partial data", or nothing

  // "causal", "selection reads the future", and behind a comma "partial data" where the data are not whole.
  std::string text() const { return data.empty() ? validity : validity + ", " + data; }
};

// What working together cost since the line before, on this rank.
struct RankTraffic {
  int ranks = 1;
  double waiting_share = 0.0;  // of the time in steps
  double bytes_sent_per_step = 0.0;
};

class RunLog {
 public:
  struct Subject {
    TokenKind kind = TokenKind::bytes;
    std::string split = {};  // that evaluations read
    RunLabels labels = {};
  };
  // Goes on behind this step: what older files say of later ones is dropped. A file for TensorBoard is made with the
  // first number for it.
  RunLog(const RunDirectory& run, std::int64_t step, Subject subject);

  struct Step {
    double loss_nats = 0.0;  // the mean since the line before
    double tokens_per_second = 0.0;
    std::optional<RankTraffic> traffic = std::nullopt;  // of several ranks
  };
  void add_step(const TrainerState& state, const StepResult& result, const Step& step);
  // A run that goes on with other settings says so, in a line of its own.
  void add_changes(std::int64_t step, const std::vector<ChangedKey>& changes);
  // The one that `state` calls the last.
  void add_evaluation(const TrainerState& state, const Evaluation& evaluation);
  // A line of clusters.jsonl: of every routed head the share of its memberships that each cluster has, to five digits,
  // and how many clusters are dead. Nothing without routed heads.
  void add_clusters(std::int64_t step, const std::vector<LayerStatistics>& routing);
  // Brings the lines to the disk.
  void sync();

 private:
  void add_event(const std::string& tag, double value, std::int64_t step);
  void append(nlohmann::ordered_json line);

  Subject subject_;
  std::filesystem::path folder_;
  std::int64_t first_step_ = 0;  // of those that will be written
  std::filesystem::path clusters_file_;
  MetricsLog metrics_;
  std::optional<MetricsLog> clusters_;  // once there is something to write
  std::optional<EventFile> events_;
};

}  // namespace routing
