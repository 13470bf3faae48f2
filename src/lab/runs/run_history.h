// How a run went, as its metrics.jsonl tells: curves, the best evaluation, labels. Knows no torch.
#pragma once

#include "routing/evaluation/measures.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace routing {

struct HistoryPoint {
  std::int64_t step = 0;
  double tokens = 0.0;   // trained on so far
  double seconds = 0.0;  // trained so far
  double value = 0.0;    // in the run's unit; NaN where the run had none
};

struct BestEvaluation {
  double value = 0.0;
  std::int64_t step = 0;
  std::string split = {};
  std::int64_t tokens = 0;  // that were scored
};

struct RunHistory {
  std::optional<ScoreUnit> unit = std::nullopt;  // nothing before the first line
  std::vector<HistoryPoint> training = {};
  // Their lines do not say the tokens: those lie between the lines of training before and after.
  std::vector<HistoryPoint> evaluation = {};
  // The last that was the best when it was made. A run that goes on with another evaluation begins to count anew.
  std::optional<BestEvaluation> best = std::nullopt;
  std::string validity = {};    // "causal", or why not
  std::string data_label = {};  // "partial data", or nothing
  std::int64_t step = 0;        // of the last line
  double tokens = 0.0;
  double seconds = 0.0;
  // The last loss of training is not finite, or above the first.
  bool diverged = false;

  // "causal, partial data".
  std::string labels() const;
};

// A history that grows line by line, for files that are still written.
class GrowingHistory {
 public:
  // The next line of metrics.jsonl. Throws a nlohmann::json::exception for one without a step and for a value of
  // another type.
  void add(const nlohmann::ordered_json& line);
  RunHistory history() const;

 private:
  RunHistory history_;
  std::optional<double> first_loss_;  // of training, NaN where it was none
  double last_loss_ = 0.0;
};

// Throws a FileError for a file that is not there, a line that is not JSON and a value of another type.
RunHistory read_run_history(const std::filesystem::path& metrics);

}  // namespace routing
