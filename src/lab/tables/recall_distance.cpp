#include "lab/tables/recall_distance.h"

#include "lab/leak/leak_report.h"
#include "routing/core/error.h"
#include "routing/ops/attend/visibility.h"
#include "routing/training/learner.h"

#include <algorithm>
#include <fmt/core.h>

namespace routing {

ContentPairs content_pairs(SequenceModel& model, const at::Tensor& tokens, MatmulPrecision precision) {
  const at::NoGradGuard no_gradient;
  const bool was_training = model.is_training();
  model.eval();
  model.logits(tokens, {.precision = precision});
  model.train(was_training);
  const bool all_local = model.config().attention.content == PatternKind::local;
  ContentPairs result;
  double pairs = 0.0;
  for (std::size_t layer = 0; layer < model.states().size(); ++layer) {
    const AttentionConfig attention = attention_of_layer(model.config(), static_cast<std::int64_t>(layer));
    for (std::size_t group = 0; group < attention.head_groups.size(); ++group) {
      const Plan& plan = model.states()[layer].self.plans.at(group);
      const double of_group =
          static_cast<double>(attended_pairs(plan)) / static_cast<double>(plan.batch * plan.num_queries);
      result.of_model += of_group;
      const bool local = std::holds_alternative<LocalPattern>(attention.head_groups[group].pattern);
      if (local != all_local) continue;
      result.heads += plan.heads;
      pairs += of_group;
    }
  }
  if (result.heads > 0) result.per_query = pairs / static_cast<double>(result.heads);
  return result;
}

RecallModel measure_recall(SequenceModel& model, const RecallToMeasure& which) {
  const ExperimentConfig& config = model.config();
  const RecallTask task(recall_options(config));
  const std::int64_t length = which.length > 0 ? which.length : config.train.sequence_length;
  const MatmulPrecision precision = matmul_precision(config.train.precision);
  return {.name = content_name(config),
          .pairs = content_pairs(model, recall_tokens(task, which.part, 0, {1, length}), precision),
          .score = score_recall(model, task,
                                {.part = which.part,
                                 .sequences = which.sequences,
                                 .length = length,
                                 .batch_size = config.eval.batch_size,
                                 .precision = precision})};
}

std::string content_name(const ExperimentConfig& config) {
  const std::string label = selection_label(config);
  if (label == "lsh") return "LSH";
  return config.attention.content == PatternKind::routing && label != "local" ? "routing, " + label : label;
}

CurvesFigure recall_figure(const std::vector<RecallModel>& models, std::int64_t least_answers) {
  require<InputError>(!models.empty(), "a figure of recall by distance needs at least one model");
  CurvesFigure figure{.title = "Right answers by distance of the fact",
                      .x_label = "distance in tokens",
                      .y_label = "share of right answers",
                      .curves = {},
                      .references = {{"chance", models.front().score.chance}},
                      .x_scale = AxisScale::doubling};
  for (const RecallModel& model : models) {
    Curve curve{.name = model.name};
    for (const DistanceScore& bin : model.score.distances) {
      if (bin.answers < std::max<std::int64_t>(1, least_answers)) continue;
      curve.x.push_back(0.5 * static_cast<double>(bin.from + bin.to));
      curve.y.push_back(bin.accuracy());
    }
    figure.curves.push_back(std::move(curve));
  }
  return figure;
}

std::string recall_markdown(const std::vector<RecallModel>& models) {
  std::size_t octaves = 0;
  for (const RecallModel& model : models) octaves = std::max(octaves, model.score.distances.size());
  std::string header = "| attention | pairs a query | all |";
  std::string rule = "|---|---|---|";
  for (std::size_t octave = 0; octave < octaves; ++octave) {
    header += " " + std::to_string(1LL << octave) + "-" + std::to_string((2LL << octave) - 1) + " |";
    rule += "---|";
  }
  std::string text = header + "\n" + rule + "\n";
  for (const RecallModel& model : models) {
    text += "| " + model.name + " | " + fmt::format("{:.1f}", model.pairs.per_query) + " | " +
            fmt::format("{:.3f}", model.score.accuracy()) + " |";
    for (std::size_t octave = 0; octave < octaves; ++octave) {
      const bool known = octave < model.score.distances.size() && model.score.distances[octave].answers > 0;
      text += known ? " " + fmt::format("{:.3f}", model.score.distances[octave].accuracy()) + " |" : " - |";
    }
    text += "\n";
  }
  return text;
}

}  // namespace routing
