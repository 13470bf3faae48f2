#include "lab/tables/table_output.h"

#include "lab/tables/table_figure.h"
#include "lab/tables/table_fixture.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "support/figure_files.h"

#include <cmath>
#include <map>
#include <sstream>

namespace routing::table_output_test {
namespace {

RowResult result(const std::string& row, std::uint64_t seed, double value, double rate = 2.0) {
  return {.terms = {.table = "small", .steps = 4},
          .row = row,
          .seed = seed,
          .numbers = {{"bits_per_byte", value}},
          .metric = "bits_per_byte",
          .steps_per_second = rate,
          .validity = row.rfind("routing", 0) == 0 ? "selection reads the future" : "causal",
          .data_label = "partial data"};
}

std::vector<RowResult> some_results() {
  RowResult broken = result("routing-w4", 3, 0.0);
  broken.failure = "step 3: the loss is nan";
  return {result("local", 1, 2.0, 1.0),
          result("local", 2, 2.5, 3.0),
          result("routing-w4", 2, 2.25),
          result("routing-w4", 1, 1.8125),
          broken,
          result("routing-w8-nearest", 1, 1.75)};
}

// A line of CSV, quotes undone.
std::vector<std::string> cells_of_line(const std::string& line) {
  std::vector<std::string> cells(1);
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && inside && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      inside = !inside;
    } else if (line[i] == ',' && !inside) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

std::map<std::string, std::map<std::string, std::string>> parsed_csv(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> head = cells_of_line(line);
  std::map<std::string, std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = cells_of_line(line);
    EXPECT_EQ(cells.size(), head.size()) << line;
    for (std::size_t i = 0; i < cells.size(); ++i) rows[cells[1]][head[i]] = cells[i];
  }
  return rows;
}

// Differences over the seeds 1 and 2: -0.1875 and -0.25, mean -0.21875, deviation 0.0441942; t(0.975, 1) is 12.7062.
TEST(TableReports, MeansAreThoseOfPlainSums) {
  const TableReport report = make_report(small_table(), some_results());
  ASSERT_EQ(report.rows.size(), 5U) << "four rows, and one with another selection";
  const ReportRow& local = report.rows[1];
  EXPECT_EQ(local.identity, "local");
  EXPECT_DOUBLE_EQ(local.metric->mean, (2.0 + 2.5) / 2.0);
  EXPECT_NEAR(local.metric->half_width, 12.7062 * std::sqrt(0.125) / std::sqrt(2.0), 1e-4);
  EXPECT_DOUBLE_EQ(*local.steps_per_second, 2.0);
  EXPECT_EQ(local.labels, "causal, partial data");
  const ReportRow& routing = report.rows[2];
  EXPECT_EQ(routing.seeds, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_DOUBLE_EQ(routing.metric->mean, (1.8125 + 2.25) / 2.0);
  EXPECT_DOUBLE_EQ(routing.difference->mean, -0.21875);
  EXPECT_NEAR(routing.difference->half_width, 12.7062 * 0.03125, 1e-4);
  EXPECT_EQ(routing.failures.size(), 1U);
  EXPECT_EQ(routing.selection, "balanced");
  EXPECT_FALSE(report.rows[3].metric);
  EXPECT_EQ(report.rows[4].identity, "routing-w8-nearest");
  EXPECT_EQ(report.rows[4].selection, "nearest");
  EXPECT_DOUBLE_EQ(report.rows[4].difference->mean, -0.25) << "of the one seed that both have";
}

TEST(TableReports, RefuseResultsOfRowsThatDoNotExist) {
  EXPECT_THROW(make_report(small_table(), {result("lokal", 1, 2.0)}), FileError);
}

TEST(TableCsv, GivesEveryNumberBack) {
  const auto rows = parsed_csv(table_csv(make_report(small_table(), some_results())));
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows.at("quoted").at("model"), "Others, \"quoted\"");
  EXPECT_EQ(rows.at("quoted").at("status"), "reported");
  EXPECT_EQ(rows.at("quoted").at("bits_per_byte"), "");
  EXPECT_EQ(std::stod(rows.at("quoted").at("paper_bits_per_byte")), 1.5);
  EXPECT_EQ(std::stod(rows.at("local").at("bits_per_byte")), 2.25);
  EXPECT_EQ(rows.at("local").at("seeds"), "1 2");
  EXPECT_EQ(rows.at("local").at("bits_per_byte_values"), "2 2.5");
  EXPECT_EQ(std::stod(rows.at("local").at("paper_steps_per_second_printed")), 3.5);
  EXPECT_EQ(std::stod(rows.at("routing-w4").at("difference")), -0.21875);
  EXPECT_EQ(rows.at("routing-w8").at("status"), "missing");
  EXPECT_EQ(rows.at("routing-w8-nearest").at("bits_per_byte_half_width"), "") << "of one seed nothing is known";
}

TEST(TableMarkdown, HasOursBesideThePapers) {
  const std::string text = table_markdown(make_report(small_table(), some_results()));
  std::istringstream lines(text);
  std::vector<std::string> rows;
  std::size_t bars = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("|", 0) != 0) continue;
    rows.push_back(line);
    const auto found = static_cast<std::size_t>(std::count(line.begin(), line.end(), '|'));
    if (bars == 0) bars = found;
    EXPECT_EQ(found, bars) << line;
  }
  ASSERT_EQ(rows.size(), 2U + 5U);
  const auto has = [](const std::string& line, const std::string& part) {
    return line.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(rows[2], "| reported ")) << rows[2];
  EXPECT_TRUE(has(rows[2], "| 1.50 ")) << rows[2];
  EXPECT_TRUE(has(rows[3], "| 2.2500 ± 3.1766 (2) ")) << rows[3];
  EXPECT_TRUE(has(rows[3], "| 3.500 ")) << rows[3];
  EXPECT_TRUE(has(rows[4], "(2), 1 diverged")) << rows[4];
  EXPECT_TRUE(has(rows[4], "| -0.2188 ± 0.3971 (2) ")) << rows[4];
  EXPECT_TRUE(has(rows[4], "selection reads the future, partial data")) << rows[4];
  EXPECT_TRUE(has(rows[5], "| - ")) << rows[5];
  EXPECT_TRUE(has(rows[6], "| 1.7500 (1) ")) << rows[6];
  EXPECT_TRUE(has(text, "not a valid likelihood"));
  EXPECT_TRUE(has(text, "- routing-w4 diverged: seed 3: step 3: the loss is nan"));
  EXPECT_TRUE(has(text, "- A note."));
  EXPECT_TRUE(has(table_markdown(make_report(small_table(), {})), "no results yet"));
}

TEST(TableMarkdown, OfTimedRowsComparesRatios) {
  TableSpec spec = small_table();
  spec.kind = TableKind::timed;
  spec.metric = {.key = "steps_per_second", .name = "steps/s", .digits = 2, .paper_digits = 0};
  RowResult slow = result("routing-w4", 1, 0.0, 0.5);
  slow.metric = "steps_per_second";
  slow.numbers = {{"steps_per_second", 0.5}, {"slower_than_baseline", 1.625}};
  const std::string text = table_markdown(make_report(spec, {slow}));
  EXPECT_NE(text.find("| 0.50 (1) "), std::string::npos) << text;
  EXPECT_NE(text.find("| 1.62 "), std::string::npos) << text;
  EXPECT_NE(text.find("| 1.25 "), std::string::npos) << "the paper's: 1.25 / 1.0\n" << text;
}

TEST(TableJson, SaysTheSame) {
  const auto object = table_json(make_report(small_table(), some_results()));
  EXPECT_EQ(object["rows"].size(), 5U);
  EXPECT_EQ(object["rows"][1]["mean"], 2.25);
  EXPECT_EQ(object["rows"][3]["mean"], nullptr);
  EXPECT_EQ(object["rows"][1]["columns"]["window"], "8");
  EXPECT_EQ(object["plan"]["steps"], 4);
}

TEST(TablePictures, ShowDifferencesToTheBaselineOnBothSides) {
  const TablePicture picture = table_picture(make_report(small_table(), some_results()));
  EXPECT_EQ(picture.names, (std::vector<std::string>{"quoted", "local", "routing-w4", "routing-w8-nearest"}));
  ASSERT_EQ(picture.ours.marks.size(), 3U);
  ASSERT_EQ(picture.paper.marks.size(), 3U);
  EXPECT_TRUE(picture.ours.differences);
  EXPECT_EQ(picture.ours.marks[0].value, 0.0);
  EXPECT_EQ(picture.ours.marks[1].value, -0.21875);
  EXPECT_EQ(picture.ours.marks[1].line, 2U);
  EXPECT_TRUE(picture.ours.marks[1].routed);
  EXPECT_EQ(picture.ours.marks[2].half_width, 0.0);
  EXPECT_EQ(picture.paper.marks[0].value, 0.25);
  EXPECT_EQ(picture.paper.marks[2].value, -0.25);
  EXPECT_LE(picture.ours.range.low, -0.25);
  EXPECT_GE(picture.ours.range.high, 0.0);
  const TablePicture without = table_picture(make_report(small_table(), {result("routing-w8", 1, 2.0)}));
  EXPECT_FALSE(without.ours.differences);
  EXPECT_EQ(without.ours.marks.at(0).value, 2.0);
}

TableSpec without_paper() {
  TableSpec spec = small_table();
  spec.source = "ours";
  std::erase_if(spec.rows, [](const TableRow& row) { return row.is_literature; });
  for (TableRow& row : spec.rows) {
    row.paper_metric.reset();
    row.paper_steps_per_second.reset();
  }
  return spec;
}

TEST(TablePictures, HaveNoPanelForAPaperThatSaysNothing) {
  const TemporaryFolder folder;
  write_table_figure(make_report(small_table(), some_results()), folder / "both.png");
  write_table_figure(make_report(without_paper(), {result("local", 1, 1.29)}), folder / "ours.png");
  EXPECT_LT(FigureImage(folder / "ours.png").width(), FigureImage(folder / "both.png").width() - 600);
  const std::string text = table_markdown(make_report(without_paper(), {result("local", 1, 1.29)}));
  EXPECT_EQ(text.find("paper"), std::string::npos) << text;
  EXPECT_EQ(text.find("Paper"), std::string::npos) << text;
}

TEST(TablePictures, ALoneValueHasRoomAroundIt) {
  const TablePicture picture = table_picture(make_report(without_paper(), {result("local", 1, 1.29)}));
  EXPECT_LE(picture.ours.range.low, 1.28);
  EXPECT_GE(picture.ours.range.high, 1.30);
}

// The text table's rows choose their own selection, so --selection does not concern them.
TEST(TablePictures, RowsWithRoutedHeadsHaveTheirColourWhoeverChoseTheSelection) {
  TableSpec spec = without_paper();
  for (TableRow& row : spec.rows) row.is_routed = false;
  const TablePicture picture =
      table_picture(make_report(spec, {result("local", 1, 1.5), result("routing-w4", 1, 1.25)}));
  ASSERT_EQ(picture.ours.marks.size(), 2U);
  EXPECT_FALSE(picture.ours.marks[0].routed);
  EXPECT_TRUE(picture.ours.marks[1].routed);
}

TEST(TableFiles, AreWrittenAndReadable) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_table(make_report(small_table(), {}), folder.path()).size(), 2U);
  EXPECT_EQ(write_table(make_report(small_table(), some_results()), folder.path()).size(), 4U);
  const FigureImage image(folder / "table.png");
  ASSERT_TRUE(image.readable());
  EXPECT_TRUE(image.holds(group_colour(0), 0, 0, image.width() / 2.0, image.height() / 2.0));
  EXPECT_NE(text_of(folder / "table.svg").find("<title>Small &amp; &lt;made up&gt;</title>"), std::string::npos);
  EXPECT_THROW(write_table_figure(make_report(small_table(), some_results()), folder / "table.pdf"), ConfigError);
}

TEST(IntervalText, LeavesOutWhatASingleSeedCannotSay) {
  EXPECT_EQ(interval_text({.mean = 1.23456, .half_width = 0.0154, .values = 3}, 3), "1.235 ± 0.015 (3)");
  EXPECT_EQ(interval_text({.mean = 1.5, .half_width = INFINITY, .values = 1}, 2), "1.50 (1)");
}

}  // namespace
}  // namespace routing::table_output_test
