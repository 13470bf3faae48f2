#include "runs/model_card.h"

#include "routing/training/progress.h"
#include "shell/output.h"

#include <filesystem>
#include <utility>
#include <vector>

namespace routing {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

// Names of files and texts of metadata may hold what Markdown would take for its own.
std::string in_a_cell(const std::string& text) {
  std::string cell;
  for (const char letter : text) {
    if (letter == '|' || letter == '<' || letter == '`') cell += '\\';
    cell += letter == '\n' ? ' ' : letter;
  }
  return cell;
}

std::string table(const Rows& rows) {
  std::string text = "| | |\n|---|---|\n";
  for (const auto& [name, value] : rows) text += "| " + name + " | " + in_a_cell(value) + " |\n";
  return text;
}

std::string kind_of_model(const ModelCard& card, const ExperimentConfig& config) {
  const std::string shape = config.model.encoder_layers > 0 ? "encoder-decoder" : "decoder-only";
  const TokenKind tokens = exported_tokens(card.source);
  const std::string reads = tokens == TokenKind::automatic ? "" : " of " + std::string(to_string(tokens));
  return shape + reads + ", " + std::to_string(config.model.layers) + " layers of width " +
         std::to_string(config.model.width) + ", " + short_count(static_cast<double>(card.source.model.parameters)) +
         " weights";
}

std::string data_text(const ExperimentConfig& config, const std::string& label) {
  std::string text(to_string(config.data.format));
  if (!config.data.path.empty()) {
    const std::filesystem::path path(config.data.path);
    text = (path.has_filename() ? path : path.parent_path()).filename().string() + ", split " + config.data.split;
  }
  return label.empty() ? text : text + " (" + label + ")";
}

// The evaluation of the very checkpoint, where there was one, and the best of the run if that is another.
void add_figures(const ModelCard& card, const std::string& labels, Rows& rows) {
  const RunHistory& history = card.history;
  const auto text = [&](double value, std::int64_t step) {
    return fixed_digits(value, 4) + " " + history.unit->name + " at step " + std::to_string(step) + "; " + labels;
  };
  const std::int64_t step = card.trained ? card.trained->step : -1;
  for (const HistoryPoint& point : history.evaluation) {
    if (point.step == step) rows.emplace_back("evaluation", text(point.value, step));
  }
  if (!history.best) return;
  if (history.best->step != step) rows.emplace_back("best of its run", text(history.best->value, history.best->step));
  rows.emplace_back("evaluated on",
                    std::to_string(history.best->tokens) + " tokens of the part " + history.best->split);
}

std::string usage(const ExperimentConfig& config) {
  const bool image = config.model.image_height > 0;
  const bool pairs = config.model.encoder_layers > 0;
  std::string text = "In this folder, with the program `routing`:\n\n";
  text += image   ? "    routing generate . --num-samples 16 --out samples\n"
          : pairs ? "    routing generate . --prompt-ids 3,17,5\n"
                  : "    routing generate . --prompt \"Once upon a time\" -n 500\n";
  text += pairs ? "    routing eval .\n" : "    routing eval . --data PATH --split test\n";
  if (!pairs) text += "    routing analyze attention . --data PATH --out attention.png\n";
  text += "    routing info .\n    sha256sum -c SHA256SUMS\n\n";
  return text +
         "The folder may lie anywhere and names no path. `--split test` takes the part that was held out, if PATH are "
         "the\n"
         "data above. Weights are safetensors, which Python reads with `safetensors.safe_open`; the file's metadata "
         "hold\n"
         "configuration and labels. There is no state of an optimiser: the model cannot be trained on from here.\n";
}

}  // namespace

std::string model_card(const ModelCard& card) {
  const ExperimentConfig config = card.source.model.config();
  const ModelHeader& model = card.source.model;
  const std::string data_label = model.text("data_label");
  const std::string validity = validity_label(config);
  Rows rows{
      {"model", kind_of_model(card, config)}, {"experiment", config.name}, {"data", data_text(config, data_label)}};
  if (card.trained) {
    rows.emplace_back("trained", std::to_string(card.trained->step) + " steps, " +
                                     short_count(static_cast<double>(card.trained->tokens)) + " tokens, " +
                                     clock_text(card.trained->seconds));
  }
  add_figures(card, data_label.empty() ? validity : validity + ", " + data_label, rows);
  rows.emplace_back("validity", validity);
  rows.emplace_back("audit", model.text("audit").empty() ? "not audited" : model.text("audit"));
  rows.emplace_back("made by", "routing " + model.text("version") + ", exported " + card.date);
  return "# " + in_a_cell(card.title) + "\n\nA Routing Transformer, exported by `routing export`.\n\n" + table(rows) +
         "\n`causal` means that no prediction can see what comes after it; `selection reads the future` means that "
         "the\n"
         "figures are not valid likelihoods; `partial data` that the model did not learn from a whole data set. "
         "`routing\n"
         "audit .` checks the first two bit by bit.\n\n## Use\n\n" +
         usage(config) +
         "\n## Terms\n\nThis card states no licence. Whoever passes the model on says which one holds for the weights, "
         "and "
         "what\nfollows from the terms of the data.\n";
}

}  // namespace routing
