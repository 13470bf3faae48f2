#include "lab/tables/text_table.h"

#include "lab/figures/curves_figure.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/dataset.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"
#include "routing/training/run_directory.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReference = "routed";
constexpr std::size_t kClasses = 4;  // all, near, far, never: the first rows of a report

std::string bits_text(double bits) {
  return fmt::format("{:.4f}", bits);
}

std::string difference_text(const RecurrenceRow& row) {
  if (row.targets == 0) return "-";
  const std::string mean = (row.bits.ratio > 0.0 ? "+" : "") + bits_text(row.bits.ratio);
  if (!row.bits.bounded) return mean;
  return mean + " (" + bits_text(row.bits.low) + " to " + bits_text(row.bits.high) + ")";
}

RecurrenceOfRow score_row(const FinishedRow& row) {
  Transformer model = load_model(RunDirectory(row.run).find_checkpoint("last").model());
  const ExperimentConfig& config = model->config();
  const Dataset data(config.data);
  // The reach of a model without added heads, whatever this one reads.
  const RecurrenceOptions options{.context = usual_context(data.facts().tokens), .reach = local_reach(config)};
  RecurrenceOfRow scored{.row = row.row, .seed = row.seed};
  LikelihoodOptions windows{.sequence_length = config.train.sequence_length,
                            .batch_size = config.eval.batch_size,
                            .precision = matmul_precision(config.train.precision)};
  std::vector<std::int64_t> first_window;
  windows.scored = [&](const ScoredWindow& window) {
    if (first_window.empty()) first_window.assign(window.tokens.begin(), window.tokens.end());
    scored.windows.push_back(window_recurrence(window, options));
  };
  token_likelihood(*model, data.part("test").tokens, windows);
  scored.pairs = content_pairs(*model, at::tensor(first_window).unsqueeze(0), windows.precision);
  return scored;
}

// What the reference pays less than each row, by distance; of the first seed that has both.
CurvesFigure recurrence_figure(const std::vector<RecurrenceOfRow>& rows) {
  CurvesFigure figure{.title = "Bits that the row routed saves, by how far back the target could be found",
                      .x_label = "distance in tokens",
                      .y_label = "bits saved per target",
                      .curves = {},
                      .references = {{"the same", 0.0}},
                      .x_scale = AxisScale::doubling};
  const auto reference =
      std::find_if(rows.begin(), rows.end(), [](const RecurrenceOfRow& row) { return row.row == kReference; });
  if (reference == rows.end()) return figure;
  for (const RecurrenceOfRow& row : rows) {
    if (row.seed != reference->seed || row.row == kReference) continue;
    Curve curve{.name = row.row};
    for (const RecurrenceRow& octave : recurrence_differences(reference->windows, row.windows)) {
      if (octave.from == 0 || octave.targets < 200) continue;
      curve.x.push_back(0.5 * static_cast<double>(octave.from + octave.to));
      curve.y.push_back(-octave.bits.ratio);
    }
    figure.curves.push_back(std::move(curve));
  }
  return figure;
}

std::vector<fs::path> finish_text(const FinishedTable& table) {
  std::vector<RecurrenceOfRow> rows;
  for (const FinishedRow& row : table.rows) {
    if (table.notes) table.notes("scoring " + row.row + " seed " + std::to_string(row.seed) + " by recurrence");
    rows.push_back(score_row(row));
  }
  std::vector<fs::path> written{table.folder / "recurrence.md"};
  write_file_at_once(written.back(), recurrence_markdown(rows, kReference));
  const CurvesFigure figure = recurrence_figure(rows);
  if (figure.curves.empty()) return written;
  written.push_back(table.folder / "recurrence.png");
  write_curves_figure(figure, written.back());
  return written;
}

TableRow text_row(std::string id, std::string name, std::string reads, std::vector<std::string> settings) {
  const RowRecipe recipe{.preset = "table-text", .settings = std::move(settings)};
  return {.id = std::move(id), .name = std::move(name), .columns = {std::move(reads)}, .tiny = recipe, .paper = recipe};
}

}  // namespace

std::string recurrence_markdown(const std::vector<RecurrenceOfRow>& rows, const std::string& reference) {
  require<InputError>(!rows.empty(), "a report by recurrence needs at least one row");
  std::string text =
      "| row | seed | all | near | far | never | keys per query of a content head | of all heads |\n"
      "|---|---|---|---|---|---|---|---|\n";
  std::string shares;
  for (const RecurrenceOfRow& row : rows) {
    const std::vector<RecurrenceRow> classes = recurrence_rows(row.windows);
    text += "| " + row.row + " | " + std::to_string(row.seed) + " |";
    for (std::size_t i = 0; i < kClasses; ++i) {
      text += " " + (classes.at(i).targets > 0 ? bits_text(classes.at(i).bits.ratio) : std::string("-")) + " |";
    }
    text +=
        " " + fmt::format("{:.0f}", row.pairs.per_query) + " | " + fmt::format("{:.0f}", row.pairs.of_model) + " |\n";
    if (!shares.empty()) continue;
    for (std::size_t i = 1; i < kClasses; ++i) {
      shares += (i > 1 ? ", " : "") + classes.at(i).name + " " + bits_text(classes.at(i).share);
    }
  }
  text += "\nBits per target; keys counted in the first window. Shares of the classes: " + shares + ".\n";
  std::string differences;
  for (const RecurrenceOfRow& row : rows) {
    const auto same_seed = std::find_if(rows.begin(), rows.end(), [&](const RecurrenceOfRow& other) {
      return other.row == reference && other.seed == row.seed;
    });
    if (row.row == reference || same_seed == rows.end()) continue;
    const std::vector<RecurrenceRow> classes = recurrence_differences(same_seed->windows, row.windows);
    differences += "| " + row.row + " | " + std::to_string(row.seed) + " |";
    for (std::size_t i = 0; i < kClasses; ++i) differences += " " + difference_text(classes.at(i)) + " |";
    differences += "\n";
  }
  if (differences.empty()) return text;
  return text + "\nRow `" + reference +
         "` minus each row of the same seed, with 95 % intervals paired over windows:\n\n" +
         "| row | seed | all | near | far | never |\n|---|---|---|---|---|---|\n" + differences;
}

TableSpec text_table() {
  TableSpec spec{.name = "text",
                 .title = "text: does attention by content pay?",
                 .source = "ours (docs/results.md)",
                 .metric = {.key = "bits_per_byte", .name = "bits/byte", .digits = 4},
                 .columns = {"the two added heads read"},
                 .baseline = "local",
                 .data = "a folder of train.txt, valid.txt and test.txt, such as scripts/c-corpus makes, or any text"};
  spec.notes = {
      "Bytes, sequences of 4,096, two layers of 128 with 8 local heads of window 128; two heads are added in the top "
      "layer (presets/table-text.toml).",
      "recurrence.md has the bits by how far back a target could be found, and paired intervals of the differences.",
      "There is one scale: paper is the same."};
  const std::string plain_self = "routing.self=only_if_alone";
  spec.rows = {
      text_row("local", "local", "(none added)", {"attention.content_heads=0"}),
      text_row("local-half", "local, 4 of the 8 heads", "(none added)",
               {"attention.content_heads=0", "attention.heads=4", "model.head_dim=16"}),
      text_row("local-wide", "local, windows of 200", "(none added): more pairs than routed",
               {"attention.content_heads=0", "local.window=200"}),
      text_row("local-more", "local, 10 heads", "the last 128, as all local heads", {"attention.content=local"}),
      text_row("local-shifted", "local + shifted keys", "the last 512, shifted keys",
               {"routing.clusters=1", "routing.window=512", "routing.target_share=1"}),
      text_row("routed-plain", "local + routed, as in the paper", "192 of each of its clusters",
               {"routing.key_shift=0", "routing.learned_scale=false", "routing.scale=1/sqrt(head_dim)", plain_self}),
      text_row("routed-fixed", "local + routed, shifted keys, fixed scale", "192 of each of its clusters, shifted keys",
               {"routing.learned_scale=false"}),
      text_row(kReference, "local + routed, shifted keys, learned scale", "192 of each of its clusters, shifted keys",
               {}),
      text_row("full-plain", "local + full", "everything", {"attention.content=full", "full.relative=none"}),
      text_row("full-shifted", "local + full, shifted keys, learned scale", "everything, shifted keys",
               {"routing.clusters=1", "routing.window=4096", "routing.target_share=1"}),
  };
  spec.finish = finish_text;
  return spec;
}

}  // namespace routing
