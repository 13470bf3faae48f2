#include "eval/eval_recall.h"

#include "commands.h"
#include "inputs/run_model.h"
#include "routing/evaluation/recall_accuracy.h"
#include "routing/model/weights.h"
#include "shell/output.h"

#include <nlohmann/json.hpp>

#include <string>

namespace routing {
namespace {

std::string percent(double share) {
  return fixed_digits(100.0 * share, 1) + " %";
}

}  // namespace

int eval_recall(const RecallEvaluation& asked, const ExperimentConfig& config) {
  Transformer model = load_model(asked.model);
  const RecallTask task(recall_options(config));
  const std::int64_t length = asked.sequence_length > 0 ? asked.sequence_length : config.train.sequence_length;
  const RecallScore score = score_recall(*model, task,
                                         {.part = asked.split,
                                          .sequences = asked.sequences,
                                          .length = length,
                                          .batch_size = asked.batch_size,
                                          .precision = asked.precision});
  const std::string validity = validity_label(config);
  const std::string audit = audit_text(load_model_notes(asked.model));
  const double nats = score.nats / static_cast<double>(score.tokens);
  const double least_nats = score.least_nats / static_cast<double>(score.tokens);
  Report report;
  report.fact("model", asked.model.string()).fact("data", "recall").fact("split", asked.split);
  report.fact("tokens", score.tokens).fact("eval_loss_nats", nats).fact("least_loss_nats", least_nats);
  report.fact("accuracy", score.accuracy()).fact("chance", score.chance).fact("answers", score.answers());
  report.line("right answers", percent(score.accuracy()) + " of " + std::to_string(score.answers()) + "   chance is " +
                                   percent(score.chance) + ", " + validity);
  report.line("nats/token", fixed_digits(nats, 5) + "   the least possible is " + fixed_digits(least_nats, 5));
  auto distances = nlohmann::ordered_json::array();
  for (const DistanceScore& bin : score.distances) {
    distances.push_back({{"from", bin.from},
                         {"to", bin.to},
                         {"answers", bin.answers},
                         {"right", bin.right},
                         {"accuracy", bin.accuracy()},
                         {"nats", bin.answers == 0 ? 0.0 : bin.nats / static_cast<double>(bin.answers)}});
    if (bin.answers == 0) continue;
    report.line(std::to_string(bin.from) + "-" + std::to_string(bin.to) + " back",
                percent(bin.accuracy()) + " of " + std::to_string(bin.answers));
  }
  report.fact("distances", distances).fact("sequence_length", length).fact("validity", validity);
  report.line("data", std::to_string(asked.sequences) + " sequences of " + std::to_string(length) +
                          " tokens, recall, part " + asked.split);
  report.fact("audit", audit).line("audit", audit).line("model", asked.model.string());
  report.print(asked.json, 16);
  return kDone;
}

}  // namespace routing
