#include "lab/tables/our_tables.h"

#include "lab/heads/divergence_text.h"
#include "lab/leak/leak_report.h"
#include "lab/tables/table_fixture.h"
#include "lab/tables/text_table.h"
#include "routing/core/files.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>

namespace routing::our_tables_test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class OurTables : public SmallTable {
 protected:
  // Runs the rows in small and looks into all of them.
  std::vector<std::filesystem::path> run_and_finish(const TableSpec& spec, const std::string& rows,
                                                    const std::vector<std::string>& small,
                                                    const std::string& data = "text") {
    TableOptions given = options(spec.name);
    given.data = (folder_ / data).string();
    given.rows = rows;
    given.seeds = {1};
    given.steps = 2;
    given.settings = small;
    EXPECT_EQ(run_table(spec, given).end, TableEnd::finished);
    FinishedTable finished{.folder = folder_ / spec.name};
    const TableFolder folder(folder_ / spec.name);
    for (const RowResult& result : folder.read_results(spec.name)) {
      EXPECT_TRUE(result.failure.empty()) << result.failure;
      finished.rows.push_back({.row = result.row, .seed = result.seed, .run = folder.run(result.row, result.seed)});
    }
    return spec.finish(finished);
  }
};

const std::vector<std::string> kSmall{"model.width=16",           "model.feedforward_width=16", "train.batch_size=1",
                                      "train.sequence_length=64", "train.eval_every=0",         "routing.window=16",
                                      "local.window=8",           "train.precision=fp32",       "train.warmup_steps=1"};

TEST_F(OurTables, RecallScoresEveryRowByDistance) {
  const TableSpec& spec = table_spec("recall");
  const auto written = run_and_finish(spec, "full,local,nearest",
                                      with(kSmall, {"train.shortest_length=32", "random.window=16", "lsh.window=16"}));
  ASSERT_EQ(written.size(), 2U);
  for (const auto& path : written) EXPECT_GT(std::filesystem::file_size(path), 100U) << path;
  const std::vector<std::string> lines = lines_of(read_file(folder_ / "recall/distance.md"));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[2].rfind("| full | 32.5 |", 0), 0U) << "a query of 64 tokens reads 32.5 on average: " << lines[2];
  EXPECT_EQ(lines[4].rfind("| routing, nearest |", 0), 0U) << lines[4];
  const std::vector<RowResult> results = TableFolder(folder_ / "recall").read_results("recall");
  EXPECT_EQ(results[0].number("pairs_per_query"), 32.5);
  EXPECT_EQ(results[0].number("chance"), 1.0 / 32.0);
  EXPECT_LT(*results[0].number("least_nats_per_token"), *results[0].number("nats_per_token"));
}

TEST_F(OurTables, LeakMeasuresAllRowsTogether) {
  const auto written = run_and_finish(table_spec("leak"), "balanced,nearest", kSmall);
  ASSERT_EQ(written.size(), 4U);
  for (const auto& path : written) EXPECT_GT(std::filesystem::file_size(path), 100U) << path;
  const std::string text = read_file(folder_ / "leak/leak.md");
  EXPECT_NE(text.find("balanced"), std::string::npos);
  EXPECT_NE(text.find("nearest"), std::string::npos);
  EXPECT_NE(text.find("selection reads the future"), std::string::npos) << text;
}

TEST_F(OurTables, TextComparesEveryRowWithTheRoutedOneByRecurrence) {
  const std::vector<std::string> small =
      with(kSmall, {"attention.heads=2", "routing.clusters=2", "routing.target_share=1", "train.keep_checkpoints=1",
                    "train.checkpoint_every=0"});
  // The table's own folder is called text.
  std::filesystem::rename(folder_ / "text", folder_ / "words");
  const auto written = run_and_finish(table_spec("text"), "local-more,routed", small, "words");
  ASSERT_EQ(written.size(), 2U);
  for (const auto& path : written) EXPECT_GT(std::filesystem::file_size(path), 100U) << path;
  const std::vector<std::string> lines = lines_of(read_file(folder_ / "text/recurrence.md"));
  ASSERT_EQ(lines.size(), 12U);
  EXPECT_EQ(lines[2].rfind("| local-more | 1 |", 0), 0U) << lines[2];
  EXPECT_EQ(lines[3].rfind("| routed | 1 |", 0), 0U) << lines[3];
  // What `routing table` prints of a row is the mean over all its targets.
  const std::vector<RowResult> results = TableFolder(folder_ / "text").read_results("text");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_NEAR(std::stod(lines[3].substr(std::string("| routed | 1 |").size())), *results[1].number("bits_per_byte"),
              1e-4);
  EXPECT_EQ(lines[11].rfind("| local-more | 1 |", 0), 0U) << lines[11];
}

TEST(TextTable, RowsDifferInTheAddedHeadsOnly) {
  const TableSpec& spec = table_spec("text");
  const auto heads = [&](const std::string& id) {
    const ExperimentConfig config = row_config(table_row(spec, id), {});
    EXPECT_EQ(validity_label(config), "causal") << id;
    EXPECT_EQ(attention_of_layer(config, 0).head_groups.size(), 1U) << id;
    return attention_of_layer(config, 1);
  };
  EXPECT_EQ(heads("local").head_groups.size(), 1U);
  EXPECT_EQ(total_heads(heads("local")), 8);
  EXPECT_EQ(total_heads(heads("local-half")), 4);
  EXPECT_EQ(head_dim(heads("local-half")), head_dim(heads("local")));
  for (const std::string id :
       {"local-more", "local-shifted", "routed-plain", "routed-fixed", "routed", "full-plain", "full-shifted"}) {
    const AttentionConfig attention = heads(id);
    ASSERT_EQ(attention.head_groups.size(), 2U) << id;
    EXPECT_EQ(attention.head_groups[0], heads("local").head_groups[0]) << id;
    EXPECT_EQ(attention.head_groups[1].heads, 2) << id;
    EXPECT_TRUE(attention.head_groups[1].added) << id;
    EXPECT_EQ(attention.head_groups[1].key_shift, id.find("plain") == std::string::npos && id != "local-more" ? 1 : 0)
        << id;
  }
  const auto routing = [&](const std::string& id) {
    return std::get<RoutingPattern>(heads(id).head_groups[1].pattern);
  };
  EXPECT_EQ(routing("full-shifted").window, row_config(table_row(spec, "routed"), {}).train.sequence_length);
  EXPECT_EQ(routing("full-shifted").clusters, 1);
  EXPECT_EQ(routing("local-shifted").clusters, 1);
  EXPECT_TRUE(heads("routed").head_groups[1].learned_scale);
  EXPECT_FALSE(heads("routed-fixed").head_groups[1].learned_scale);
}

TEST(RecurrenceMarkdown, HasClassesAndPairedDifferences) {
  const auto windows = [](double bits) {
    std::vector<WindowRecurrence> all(3);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].tokens_hash = i;
      all[i].classes[1] = {.targets = 10, .nats = 10.0 * bits * std::numbers::ln2};
      all[i].classes[2] = {.targets = 30, .nats = 90.0 * std::numbers::ln2};
    }
    return all;
  };
  const std::string text =
      recurrence_markdown({{"local", 1, windows(2.0), {.heads = 4, .per_query = 12.0, .of_model = 48.0}},
                           {"routed", 1, windows(0.5), {.heads = 1, .per_query = 33.4, .of_model = 69.4}}},
                          "routed");
  EXPECT_NE(text.find("| local | 1 | 2.7500 | - | 2.0000 | 3.0000 | 12 | 48 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| routed | 1 | 2.3750 | - | 0.5000 | 3.0000 | 33 | 69 |"), std::string::npos) << text;
  EXPECT_NE(text.find("far 0.2500, never 0.7500"), std::string::npos) << text;
  EXPECT_NE(text.find("| local | 1 | -0.3750 (-0.3750 to -0.3750) | - | -1.5000 (-1.5000 to -1.5000) | 0.0000"),
            std::string::npos)
      << text;
  EXPECT_EQ(recurrence_markdown({{"local", 1, windows(2.0)}}, "routed").find("minus each row"), std::string::npos);
  EXPECT_THROW(recurrence_markdown({}, "routed"), InputError);
}

TEST_F(OurTables, JsdComparesTheHeadsOfEveryLayer) {
  std::filesystem::create_directory(folder_ / "wiki");
  for (const std::string part : {"train", "valid", "test"}) {
    std::ofstream text(folder_ / "wiki" / ("wiki." + part + ".tokens"));
    for (int i = 0; i < 200; ++i) text << " word" << i * i % 29 << " of some <unk> text \n";
  }
  const auto written =
      run_and_finish(table_spec("jsd"), "", with(kSmall, {"data.cache=" + (folder_ / "cache").string()}), "wiki");
  ASSERT_EQ(written.size(), 2U);
  for (const auto& path : written) EXPECT_GT(std::filesystem::file_size(path), 100U) << path;
  const std::vector<RowResult> results = TableFolder(folder_ / "jsd").read_results("jsd");
  ASSERT_EQ(results.size(), 1U);
  // The row's figure is the mean over the layers; the text has a line per layer.
  double sum = 0.0;
  for (int layer = 2; layer < 4; ++layer) sum += *results[0].number("local_content_layer" + std::to_string(layer));
  EXPECT_NEAR(*results[0].value(), sum / 2.0, 1e-12) << "only the top two layers have routed heads";
  EXPECT_GT(*results[0].value(), 0.0);
  EXPECT_LE(*results[0].value(), std::numbers::ln2);
  const std::vector<std::string> lines = lines_of(read_file(folder_ / "jsd/jsd.md"));
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return line.rfind("| ", 0) == 0; }),
            1 + 4);
}

TEST_F(OurTables, EveryLeakRowDiffersInItsSelectionOnly) {
  const TableSpec& spec = table_spec("leak");
  for (const TableScale scale : {TableScale::tiny, TableScale::paper}) {
    std::vector<std::string> labels;
    for (const TableRow& row : spec.rows) {
      ExperimentConfig config = row_config(row, {.scale = scale});
      labels.push_back(selection_label(config));
      const ExperimentConfig first = row_config(spec.rows.front(), {.scale = scale});
      EXPECT_EQ(config.model, first.model) << row.id;
      EXPECT_EQ(config.train, first.train) << row.id;
    }
    EXPECT_EQ(labels, (std::vector<std::string>{"balanced", "nearest", "threshold", "random", "local"}));
  }
}

// What the content heads of a row read, by the definition of its pattern: windows full from some position on. Lists
// that follow the content are as uneven as training makes them, so what they read is counted: 114 keys
// (docs/recall.md).
TEST_F(OurTables, RecallRowsReadEquallyManyKeys) {
  const TableSpec& spec = table_spec("recall");
  const double n = 4096.0;
  const auto config_of = [&](const std::string& id) { return row_config(table_row(spec, id), {}); };
  const ExperimentConfig routed = config_of("threshold");
  const double lists = 114.0;
  EXPECT_EQ(static_cast<double>(routed.routing.routing().clusters * routed.routing.routing().window), n);
  const auto window = static_cast<double>(std::get<LocalPattern>(config_of("local").patterns.local.pattern).window);
  EXPECT_NEAR(window - window * window / 2.0 / n, lists, 0.01 * lists);
  const auto stride =
      static_cast<double>(std::get<StridedPattern>(config_of("strided").patterns.strided.pattern).stride);
  EXPECT_NEAR(n / stride / 2.0, lists, 0.01 * lists);
  const RandomPattern random = std::get<RandomPattern>(config_of("random").patterns.random.pattern);
  EXPECT_NEAR(static_cast<double>(random.groups * random.window), n, 0.005 * n);
  EXPECT_NEAR(static_cast<double>(random.window) / 2.0, lists, 0.01 * lists);
}

TEST(DivergenceText, HasALayerARowBesideThePublishedOne) {
  HeadDivergence result;
  result.layers.resize(11);
  LayerDivergence& layer = result.layers[0];
  layer.patterns = {"local", "routing"};
  layer.matrix = {0.0, 0.5, 0.5, 0.0};
  layer.local_content = {.draws = 10, .mean = 0.5, .deviation = 0.25};
  const std::vector<std::string> lines = lines_of(divergence_markdown(result));
  ASSERT_EQ(lines.size(), 13U);
  EXPECT_EQ(lines[2], "| 0 | - | 0.5000 ± 0.2500 | - | 0.0038 ± 0.0018 | 0.4706 ± 0.0319 | 0.1579 ± 0.0576 |");
  EXPECT_EQ(lines[12], "| 10 | - | - | - | - | - | - |");
  const MatrixFigure figure = divergence_figure(result, "title");
  ASSERT_EQ(figure.panels.size(), 11U);
  EXPECT_EQ(figure.title, "title");
  EXPECT_EQ(figure.panels[0].labels, (std::vector<std::string>{"local 0", "routing 1"}));
  EXPECT_EQ(figure.panels[0].values, layer.matrix);
  EXPECT_DOUBLE_EQ(figure.high, std::numbers::ln2);
}

}  // namespace
}  // namespace routing::our_tables_test
