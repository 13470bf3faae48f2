#include "eval/eval_position.h"

#include "routing/config/text/path_list.h"
#include "routing/model/weights.h"
#include "shell/output.h"
#include "shell/text_table.h"
#include "train/training_display.h"

#include <algorithm>
#include <iostream>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstRange = 1024;

// The sequences of one model; their sum is added to `all`.
std::vector<SequencePositions> read_sequences(const EvalOptions& options, const fs::path& model,
                                              TrainingDisplay& display, const EvalRank& rank, Likelihood& all) {
  std::vector<std::string> paths = paths_in(options.data);
  if (paths.empty()) paths.emplace_back();
  std::vector<SequencePositions> sequences;
  for (const std::string& path : paths) {
    EvalOptions one = options;
    one.data = path;
    const EvalRun run = open_eval_run(one, model, display, rank);
    one.sequence_length = tokens_to_read(one, run);
    one.batch_size = 1;
    const Likelihood read = evaluate(one, run, display, [&](const ScoredWindow& window) {
      sequences.push_back(sequence_positions(window, kFirstRange));
    });
    all.nats += read.nats;
    all.tokens += read.tokens;
    all.windows += read.windows;
    all.sequence_length = std::max(all.sequence_length, read.sequence_length);
    all.bytes_sent += read.bytes_sent;
    all.waiting_seconds += read.waiting_seconds;
  }
  all.stride = all.sequence_length;
  return sequences;
}

nlohmann::ordered_json bits_json(const PositionRow& row) {
  nlohmann::ordered_json object{{"bits", nullptr}, {"low", nullptr}, {"high", nullptr}};
  if (row.tokens == 0) return object;
  object["bits"] = row.bits.ratio;
  if (!row.bits.bounded) return object;
  object["low"] = row.bits.low;
  object["high"] = row.bits.high;
  return object;
}

std::string with_interval(const PositionRow& row) {
  const std::string mean = fixed_digits(row.bits.ratio, 4);
  if (!row.bits.bounded) return mean + "  too few";
  return mean + "  " + fixed_digits(row.bits.low, 4) + " to " + fixed_digits(row.bits.high, 4);
}

}  // namespace

PositionResult evaluate_by_position(const EvalOptions& options, const fs::path& model, const fs::path& against,
                                    TrainingDisplay& display, const EvalRank& rank, Likelihood& likelihood) {
  PositionResult result{.against = against};
  result.sequences = read_sequences(options, model, display, rank, likelihood);
  if (against.empty()) return result;
  Likelihood other;
  result.other_sequences = read_sequences(options, against, display, rank, other);
  result.other_validity = validity_label(load_model_config(against));
  return result;
}

void print_positions(const PositionResult& result, TokenKind kind) {
  const bool compares = !result.against.empty();
  std::cout << "\nBy position in the sequence: " << unit_of(kind) << ", 95 % intervals over sequences (Fieller's, by "
            << "Student's t).\n";
  if (compares) {
    std::cout << "The other is " << result.against.string() << ", " << result.other_validity
              << "; differences are paired by sequence, negative where the first is better.\n";
  }
  std::cout << "\n";
  const std::vector<PositionRow> rows = position_rows(result.sequences);
  std::vector<PositionRow> others;
  std::vector<PositionRow> differences;
  if (compares) {
    others = position_rows(result.other_sequences);
    differences = position_differences(result.sequences, result.other_sequences);
  }
  std::vector<std::vector<std::string>> cells;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].tokens == 0) continue;
    cells.push_back({i == 0 ? "all" : std::to_string(rows[i].from) + "-" + std::to_string(rows[i].to),
                     std::to_string(rows[i].sequences), std::to_string(rows[i].tokens), with_interval(rows[i])});
    if (!compares) continue;
    cells.back().push_back(fixed_digits(others[i].bits.ratio, 4));
    cells.back().push_back(with_interval(differences[i]));
  }
  std::vector<TableColumn> columns{{.title = "position"},
                                   {.title = "sequences", .right = true},
                                   {.title = "tokens", .right = true},
                                   {.title = unit_of(kind)}};
  if (compares) columns.insert(columns.end(), {{.title = "the other"}, {.title = "difference"}});
  std::cout << text_table(columns, cells, output_width());
}

nlohmann::ordered_json positions_json(const PositionResult& result, TokenKind kind) {
  nlohmann::ordered_json object{
      {"unit", unit_of(kind)}, {"interval", "95 %, Fieller's over sequences"}, {"sequences", result.sequences.size()}};
  const std::vector<PositionRow> rows = position_rows(result.sequences);
  std::vector<PositionRow> others;
  std::vector<PositionRow> differences;
  if (!result.against.empty()) {
    object["against"] = {{"model", result.against.string()}, {"validity", result.other_validity}};
    others = position_rows(result.other_sequences);
    differences = position_differences(result.sequences, result.other_sequences);
  }
  const auto row_json = [&](std::size_t i) {
    nlohmann::ordered_json row{
        {"from", rows[i].from}, {"to", rows[i].to}, {"sequences", rows[i].sequences}, {"tokens", rows[i].tokens}};
    row.update(bits_json(rows[i]));
    if (!differences.empty()) {
      row["against"] = bits_json(others[i]);
      row["difference"] = bits_json(differences[i]);
    }
    return row;
  };
  object["all"] = row_json(0);
  object["ranges"] = nlohmann::ordered_json::array();
  for (std::size_t i = 1; i < rows.size(); ++i) object["ranges"].push_back(row_json(i));
  return object;
}

}  // namespace routing
