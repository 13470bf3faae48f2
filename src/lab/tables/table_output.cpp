#include "lab/tables/table_output.h"

#include "lab/tables/table_figure.h"
#include "routing/config/text/number_text.h"
#include "routing/core/files.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kRateDigits = 3;
constexpr const char* kMissing = "-";

std::string fixed_or_missing(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : kMissing;
}

std::string in_full(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? number_text(*value) : "";
}

bool any_row(const TableReport& report, const std::function<bool(const ReportRow&, const TableRow&)>& holds) {
  return std::any_of(report.rows.begin(), report.rows.end(),
                     [&](const ReportRow& row) { return holds(row, report.spec.rows[row.row]); });
}

// What the paper's baseline makes of a row's figure: how much slower it is.
std::optional<double> paper_ratio(const TableSpec& spec, const TableRow& row) {
  for (const TableRow& other : spec.rows) {
    if (other.id == spec.baseline && other.paper_metric && row.paper_metric) {
      return *other.paper_metric / *row.paper_metric;
    }
  }
  return std::nullopt;
}

std::string metric_cell(const ReportRow& row, const TableRow& printed, int digits) {
  if (printed.is_literature) return "reported";
  std::string text = row.metric ? interval_text(*row.metric, digits) : kMissing;
  if (!row.failures.empty()) {
    text = (row.metric ? text + ", " : "") + std::to_string(row.failures.size()) + " diverged";
  }
  return text;
}

std::string printed_cell(const TableRow& printed, int digits) {
  if (!printed.paper_metric || digits > 0) return fixed_or_missing(printed.paper_metric, digits);
  return number_text(*printed.paper_metric);
}

std::string difference_cell(const ReportRow& row, const TableSpec& spec) {
  if (!row.difference || spec.rows[row.row].id == spec.baseline) return kMissing;
  const std::string text = interval_text(*row.difference, spec.metric.digits);
  return row.difference->mean >= 0.0 ? "+" + text : text;
}

using Cells = std::vector<std::string>;

// Which columns say something for any row.
struct ShownColumns {
  bool selection = false;
  bool difference = false;
  bool rate = false;        // ours
  bool paper = false;       // the paper's figures
  bool paper_rate = false;  // the paper's
  bool slower = false;      // of a timed table
};

ShownColumns shown_columns(const TableReport& report) {
  const bool timed = report.spec.kind == TableKind::timed;
  return {.selection = any_row(report, [](const ReportRow& row, const TableRow&) { return !row.selection.empty(); }),
          .difference = !timed && !report.spec.baseline.empty(),
          .rate = !timed,
          .paper = any_row(report, [](const ReportRow&, const TableRow& row) { return row.paper_metric.has_value(); }),
          .paper_rate = any_row(
              report, [](const ReportRow&, const TableRow& row) { return row.paper_steps_per_second.has_value(); }),
          .slower = timed};
}

Cells heading(const TableReport& report, const ShownColumns& shown) {
  const TableSpec& spec = report.spec;
  Cells cells{"#", "model"};
  cells.insert(cells.end(), spec.columns.begin(), spec.columns.end());
  if (shown.selection) cells.emplace_back("selection");
  cells.push_back("ours: " + spec.metric.name);
  if (shown.difference) cells.push_back("minus " + spec.baseline);
  if (shown.slower) cells.push_back("slower than " + spec.baseline);
  if (shown.rate) cells.emplace_back("steps/s");
  cells.emplace_back("labels");
  if (shown.paper) cells.push_back("paper: " + spec.metric.name);
  if (shown.slower) cells.push_back("slower than " + spec.baseline);
  if (shown.paper_rate) cells.emplace_back("steps/s");
  return cells;
}

Cells cells_of(const TableReport& report, const ReportRow& row, const ShownColumns& shown) {
  const TableSpec& spec = report.spec;
  const TableRow& printed = spec.rows[row.row];
  Cells cells{std::to_string(row.row + 1), printed.name};
  cells.insert(cells.end(), printed.columns.begin(), printed.columns.end());
  if (shown.selection) cells.push_back(row.selection.empty() ? kMissing : row.selection);
  cells.push_back(metric_cell(row, printed, spec.metric.digits));
  if (shown.difference) cells.push_back(difference_cell(row, spec));
  if (shown.slower) cells.push_back(fixed_or_missing(row.slower, 2));
  if (shown.rate) cells.push_back(fixed_or_missing(row.steps_per_second, kRateDigits));
  cells.push_back(row.labels.empty() ? kMissing : row.labels);
  if (shown.paper) cells.push_back(printed_cell(printed, spec.metric.paper_digits));
  if (shown.slower) cells.push_back(fixed_or_missing(paper_ratio(spec, printed), 2));
  if (shown.paper_rate) cells.push_back(fixed_or_missing(printed.paper_steps_per_second, kRateDigits));
  return cells;
}

// Letters, not bytes: "±" has two bytes.
std::size_t letters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

std::string markdown_rows(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 3);
  for (const Cells& cells : rows) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], letters(cells[i]));
  }
  std::string text;
  for (std::size_t number = 0; number < rows.size(); ++number) {
    text += "|";
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += " " + rows[number][i] + std::string(widths[i] - letters(rows[number][i]), ' ') + " |";
    }
    text += "\n";
    if (number > 0) continue;
    text += "|";
    for (const std::size_t width : widths) text += std::string(width + 2, '-') + "|";
    text += "\n";
  }
  return text;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char letter : text) result += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return result + "\"";
}

std::string csv_line(const Cells& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() && &cell == cells.data() ? "" : ",") + quoted(cell);
  return line + "\n";
}

std::string status_of(const ReportRow& row, const TableRow& printed) {
  if (printed.is_literature) return "reported";
  if (row.metric) return "done";
  return row.failures.empty() ? "missing" : "failed";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

template <class Number>
std::string joined_numbers(const std::vector<Number>& values) {
  std::vector<std::string> words;
  for (const Number value : values) words.push_back(number_text(value));
  return joined(words);
}

std::optional<double> part_of(const std::optional<MeanInterval>& interval, double MeanInterval::*member) {
  return interval ? std::optional((*interval).*member) : std::nullopt;
}

Cells csv_cells(const TableReport& report, const ReportRow& row) {
  const TableRow& printed = report.spec.rows[row.row];
  Cells cells{std::to_string(row.row + 1), row.identity, printed.name};
  cells.insert(cells.end(), printed.columns.begin(), printed.columns.end());
  cells.insert(
      cells.end(),
      {row.selection, status_of(row, printed), joined_numbers(row.seeds), joined_numbers(row.values),
       in_full(part_of(row.metric, &MeanInterval::mean)), in_full(part_of(row.metric, &MeanInterval::half_width)),
       in_full(part_of(row.difference, &MeanInterval::mean)),
       in_full(part_of(row.difference, &MeanInterval::half_width)), in_full(row.steps_per_second), in_full(row.slower),
       row.labels, in_full(printed.paper_metric), in_full(printed.paper_steps_per_second)});
  return cells;
}

Json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string interval_text(const MeanInterval& interval, int digits) {
  const std::string spread =
      std::isfinite(interval.half_width) ? " ± " + fmt::format("{:.{}f}", interval.half_width, digits) : "";
  return fmt::format("{:.{}f}", interval.mean, digits) + spread + " (" + std::to_string(interval.values) + ")";
}

std::string table_markdown(const TableReport& report) {
  const TableSpec& spec = report.spec;
  const ShownColumns shown = shown_columns(report);
  std::string text = "# " + spec.title + "\n\n" + (shown.paper ? "Paper: " : "Table: ") + spec.source + ". ";
  text += report.terms ? "Ours: " + terms_text(*report.terms) + "." : "Ours: no results yet.";
  text += spec.kind == TableKind::timed
              ? " Figures are medians.\n\n"
              : " Figures are means over seeds with 95 % intervals (Student's t), the number of seeds in brackets.\n\n";
  std::vector<Cells> rows{heading(report, shown)};
  for (const ReportRow& row : report.rows) rows.push_back(cells_of(report, row, shown));
  text += markdown_rows(rows) + "\n";
  for (const std::string& note : spec.notes) text += "- " + note + "\n";
  if (any_row(report, [](const ReportRow& row, const TableRow&) {
        return row.labels.find("selection reads the future") != std::string::npos;
      })) {
    text +=
        "- \"selection reads the future\": which tokens a head reads depends on later ones, as in the paper, so this "
        "is not a valid likelihood.\n";
  }
  for (const ReportRow& row : report.rows) {
    for (const std::string& failure : row.failures) text += "- " + row.identity + " diverged: " + failure + "\n";
  }
  return text;
}

std::string table_csv(const TableReport& report) {
  const TableSpec& spec = report.spec;
  Cells head{"number", "row", "model"};
  head.insert(head.end(), spec.columns.begin(), spec.columns.end());
  const std::string& key = spec.metric.key;
  head.insert(head.end(), {"selection", "status", "seeds", key + "_values", key, key + "_half_width", "difference",
                           "difference_half_width", "our_steps_per_second", "slower_than_baseline", "labels",
                           "paper_" + key, "paper_steps_per_second_printed"});
  std::string text = csv_line(head);
  for (const ReportRow& row : report.rows) text += csv_line(csv_cells(report, row));
  return text;
}

Json table_json(const TableReport& report) {
  const TableSpec& spec = report.spec;
  Json object{{"table", spec.name}, {"source", spec.source}, {"metric", spec.metric.key}, {"baseline", spec.baseline}};
  object["plan"] = report.terms ? to_json(*report.terms) : Json(nullptr);
  object["rows"] = Json::array();
  for (const ReportRow& row : report.rows) {
    const TableRow& printed = spec.rows[row.row];
    Json entry{{"number", row.row + 1}, {"row", row.identity}, {"model", printed.name}};
    for (std::size_t i = 0; i < spec.columns.size(); ++i) entry["columns"][spec.columns[i]] = printed.columns[i];
    entry["selection"] = row.selection;
    entry["status"] = status_of(row, printed);
    entry["seeds"] = row.seeds;
    entry["values"] = row.values;
    entry["mean"] = number_or_null(part_of(row.metric, &MeanInterval::mean));
    entry["half_width"] = number_or_null(part_of(row.metric, &MeanInterval::half_width));
    entry["difference"] = number_or_null(part_of(row.difference, &MeanInterval::mean));
    entry["difference_half_width"] = number_or_null(part_of(row.difference, &MeanInterval::half_width));
    entry["steps_per_second"] = number_or_null(row.steps_per_second);
    entry["slower_than_baseline"] = number_or_null(row.slower);
    entry["labels"] = row.labels;
    entry["failures"] = row.failures;
    entry["paper"] = number_or_null(printed.paper_metric);
    entry["paper_steps_per_second"] = number_or_null(printed.paper_steps_per_second);
    object["rows"].push_back(std::move(entry));
  }
  return object;
}

std::vector<fs::path> write_table(const TableReport& report, const fs::path& folder) {
  std::vector<fs::path> written{folder / "table.md", folder / "table.csv"};
  write_file_at_once(written[0], table_markdown(report));
  write_file_at_once(written[1], table_csv(report));
  if (!any_row(report, [](const ReportRow& row, const TableRow&) { return row.metric.has_value(); })) return written;
  for (const char* name : {"table.png", "table.svg"}) {
    write_table_figure(report, folder / name);
    written.push_back(folder / name);
  }
  return written;
}

}  // namespace routing
