#include "lab/tables/table_output.h"
#include "routing/core/error.h"

#include <algorithm>
#include <set>

namespace routing {
namespace {

std::string labels_of(const RowResult& result) {
  if (result.data_label.empty()) return result.validity;
  return result.validity.empty() ? result.data_label : result.validity + ", " + result.data_label;
}

ReportRow report_row(const std::vector<RowResult>& results, std::size_t row, const std::string& identity) {
  ReportRow report{.row = row, .identity = identity};
  std::vector<const RowResult*> mine;
  for (const RowResult& result : results) {
    if (result.row == identity) mine.push_back(&result);
  }
  std::sort(mine.begin(), mine.end(), [](const RowResult* a, const RowResult* b) { return a->seed < b->seed; });
  std::vector<double> rates;
  std::vector<double> ratios;
  std::set<std::string> labels;
  for (const RowResult* result : mine) {
    const std::optional<double> value = result->value();
    if (!value) {
      report.failures.push_back("seed " + std::to_string(result->seed) + ": " + result->failure);
      continue;
    }
    report.seeds.push_back(result->seed);
    report.values.push_back(*value);
    rates.push_back(result->steps_per_second);
    if (const auto ratio = result->number("slower_than_baseline")) ratios.push_back(*ratio);
    if (labels.insert(labels_of(*result)).second) {
      report.labels += (report.labels.empty() ? "" : "; ") + labels_of(*result);
    }
  }
  if (!report.values.empty()) {
    report.metric = mean_interval(report.values);
    report.steps_per_second = mean(rates);
  }
  if (!ratios.empty()) report.slower = mean(ratios);
  return report;
}

// Over the seeds that both have.
std::optional<MeanInterval> difference_of(const ReportRow& row, const ReportRow& baseline) {
  std::vector<double> mine;
  std::vector<double> theirs;
  for (std::size_t i = 0; i < row.seeds.size(); ++i) {
    const auto found = std::find(baseline.seeds.begin(), baseline.seeds.end(), row.seeds[i]);
    if (found == baseline.seeds.end()) continue;
    mine.push_back(row.values[i]);
    theirs.push_back(baseline.values[static_cast<std::size_t>(found - baseline.seeds.begin())]);
  }
  return mine.empty() ? std::nullopt : std::optional(paired_difference(mine, theirs));
}

}  // namespace

TableReport make_report(const TableSpec& spec, const std::vector<RowResult>& results) {
  TableReport report{.spec = spec};
  if (!results.empty()) report.terms = results.front().terms;
  std::set<std::string> known;
  for (std::size_t row = 0; row < spec.rows.size(); ++row) {
    for (const RoutingSelection selection :
         {RoutingSelection::balanced, RoutingSelection::nearest, RoutingSelection::threshold}) {
      const std::string identity = row_identity(spec.rows[row], selection);
      if (!known.insert(identity).second) continue;
      ReportRow entry = report_row(results, row, identity);
      if (spec.rows[row].is_routed) entry.selection = std::string(to_string(selection));
      if (selection == kPaperSelection || entry.metric || !entry.failures.empty()) report.rows.push_back(entry);
    }
  }
  for (const RowResult& result : results) {
    require<FileError>(known.contains(result.row), "the result of ", result.row, ", seed ", result.seed, ": ",
                       spec.name, " has no such row; was the file renamed?");
  }
  if (spec.baseline.empty()) return report;
  const TableRow& baseline = table_row(spec, spec.baseline);
  const std::vector<ReportRow> measured = report.rows;
  for (ReportRow& row : report.rows) {
    // A baseline that is routed itself is that of the row's own selection.
    const RoutingSelection selection =
        row.selection.empty() ? kPaperSelection : parse_word<RoutingSelection>(row.selection, "selection");
    const std::string identity = row_identity(baseline, selection);
    const auto found = std::find_if(measured.begin(), measured.end(), [&](const ReportRow& other) {
      return other.identity == identity && other.metric.has_value();
    });
    if (found != measured.end()) row.difference = difference_of(row, *found);
  }
  return report;
}

}  // namespace routing
