// Who remembers how far? Models of the recall task (data/tasks/recall_task.h) side by side: right answers by distance,
// and what each paid for them in pairs of query and key.
#pragma once

#include "lab/figures/curves_figure.h"
#include "routing/evaluation/recall_accuracy.h"
#include "routing/model/sequence_model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// A model's content heads, by what they read.
struct ContentPairs {
  std::int64_t heads = 0;  // content heads of all layers, or all heads where every head is local
  double per_query = 0.0;  // keys that one of them reads for a query, mean over heads and queries
  double of_model = 0.0;   // keys that all heads of all layers read for a query, together
};

// Of tokens [batch, n]: attended pairs of the plans of the last group of each content layer, or of all local heads
// where attention.content is local.
ContentPairs content_pairs(SequenceModel& model, const at::Tensor& tokens, MatmulPrecision precision);

struct RecallModel {
  std::string name = {};  // as the figure shows it
  ContentPairs pairs = {};
  RecallScore score = {};
};

// Scores a model as it was trained: its task, its precision, and its length unless another is asked for. Named by
// content_name(). A ConfigError if it was not trained on recall.
struct RecallToMeasure {
  std::string part = "test";
  std::int64_t sequences = 64;
  std::int64_t length = 0;  // 0: that of training
};
RecallModel measure_recall(SequenceModel& model, const RecallToMeasure& which);

// "full", "local", "routing, threshold", "LSH" …: what the content heads of an experiment are.
std::string content_name(const ExperimentConfig& config);

// Accuracy over distance in tokens, one curve a model, on an axis that doubles; x is the middle of an octave.
// Octaves with fewer than `least_answers` answers are left out. The dashed line is chance.
CurvesFigure recall_figure(const std::vector<RecallModel>& models, std::int64_t least_answers = 10);

// A table in Markdown: a row per model, a column per octave.
std::string recall_markdown(const std::vector<RecallModel>& models);

}  // namespace routing
