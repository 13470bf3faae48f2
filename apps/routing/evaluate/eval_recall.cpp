#include "evaluate/eval_recall.h"

#include "commands.h"
#include "routing/evaluation/recall_accuracy.h"
#include "routing/model/weights.h"
#include "shell/output.h"
#include "shell/run_model.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <utility>
#include <vector>

namespace routing {
namespace {

std::string percent(double share) {
  return fixed_digits(100.0 * share, 1) + " %";
}

void print_json(const RecallEvaluation& asked, const RecallScore& score, std::int64_t length,
                const std::string& validity, const std::string& audit) {
  nlohmann::ordered_json object{{"model", asked.model.string()},
                                {"data", "recall"},
                                {"split", asked.split},
                                {"tokens", score.tokens},
                                {"eval_loss_nats", score.nats / static_cast<double>(score.tokens)},
                                {"least_loss_nats", score.least_nats / static_cast<double>(score.tokens)},
                                {"accuracy", score.accuracy()},
                                {"chance", score.chance},
                                {"answers", score.answers()},
                                {"distances", nlohmann::ordered_json::array()},
                                {"sequence_length", length},
                                {"validity", validity},
                                {"audit", audit}};
  for (const DistanceScore& bin : score.distances) {
    object["distances"].push_back({{"from", bin.from},
                                   {"to", bin.to},
                                   {"answers", bin.answers},
                                   {"right", bin.right},
                                   {"accuracy", bin.accuracy()},
                                   {"nats", bin.answers == 0 ? 0.0 : bin.nats / static_cast<double>(bin.answers)}});
  }
  std::cout << object << "\n";
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
  if (asked.json) {
    print_json(asked, score, length, validity, audit);
    return kDone;
  }
  const auto tokens = static_cast<double>(score.tokens);
  std::vector<std::pair<std::string, std::string>> lines{
      {"right answers", percent(score.accuracy()) + " of " + std::to_string(score.answers()) + "   chance is " +
                            percent(score.chance) + ", " + validity},
      {"nats/token", fixed_digits(score.nats / tokens, 5) + "   the least possible is " +
                         fixed_digits(score.least_nats / tokens, 5)}};
  for (const DistanceScore& bin : score.distances) {
    if (bin.answers == 0) continue;
    lines.emplace_back(std::to_string(bin.from) + "-" + std::to_string(bin.to) + " back",
                       percent(bin.accuracy()) + " of " + std::to_string(bin.answers));
  }
  lines.emplace_back("data", std::to_string(asked.sequences) + " sequences of " + std::to_string(length) +
                                 " tokens, recall, part " + asked.split);
  lines.emplace_back("audit", audit);
  lines.emplace_back("model", asked.model.string());
  print_pairs(lines, 16);
  return kDone;
}

}  // namespace routing
