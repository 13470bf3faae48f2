#include "lab/tables/table_spec.h"

#include "routing/config/keys.h"
#include "routing/config/resolve.h"
#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace routing::table_spec_test {
namespace {

// Keys whose values differ.
std::set<std::string> differences(const ExperimentConfig& a, const ExperimentConfig& b) {
  std::set<std::string> keys;
  for (const std::string& key : experiment_keys()) {
    if (get_key(a, key) != get_key(b, key)) keys.insert(key);
  }
  return keys;
}

TEST(Tables, HaveTheRowsOfThePaper) {
  struct Expected {
    std::size_t rows, literature;
  };
  const std::map<std::string, Expected> expected{{"cifar10-ablation", {27, 0}},
                                                 {"wikitext103", {8, 2}},
                                                 {"enwik8", {7, 1}},
                                                 {"imagenet64", {9, 4}},
                                                 {"pg19", {4, 0}},
                                                 {"step-time", {2, 0}},
                                                 {"shared-qk", {3, 0}},
                                                 {"jsd", {1, 0}},
                                                 {"leak", {5, 0}},
                                                 {"recall", {7, 0}},
                                                 {"text", {10, 0}}};
  ASSERT_EQ(table_specs().size(), expected.size());
  for (const TableSpec& spec : table_specs()) {
    std::size_t literature = 0;
    std::set<std::string> ids;
    for (const TableRow& row : spec.rows) {
      literature += row.is_literature ? 1 : 0;
      EXPECT_TRUE(ids.insert(row.id).second) << spec.name << ": " << row.id << " is there twice";
      EXPECT_EQ(row.columns.size(), spec.columns.size()) << spec.name << " " << row.id;
    }
    EXPECT_EQ(spec.rows.size(), expected.at(spec.name).rows) << spec.name;
    EXPECT_EQ(literature, expected.at(spec.name).literature) << spec.name;
    EXPECT_TRUE(spec.baseline.empty() || ids.contains(spec.baseline)) << spec.name;
  }
}

// Read from the paper's source by hand.
TEST(Tables, FiguresAreThoseOfThePaper) {
  const auto metric = [](const char* table, const char* row) {
    return *table_row(table_spec(table), row).paper_metric;
  };
  const auto rate = [](const char* row) {
    return *table_row(table_spec("cifar10-ablation"), row).paper_steps_per_second;
  };
  EXPECT_EQ(metric("cifar10-ablation", "full"), 2.983);
  EXPECT_EQ(metric("cifar10-ablation", "local"), 3.009);
  EXPECT_EQ(rate("local"), 9.023);
  EXPECT_EQ(metric("cifar10-ablation", "random"), 3.076);
  EXPECT_EQ(metric("cifar10-ablation", "routing-h2-l2-w512"), 3.005);
  EXPECT_EQ(metric("cifar10-ablation", "routing-h4-l8-w512"), 2.971);
  EXPECT_EQ(rate("routing-h4-l8-w512"), 5.140);
  EXPECT_EQ(metric("cifar10-ablation", "routing-h8-l12-w512"), 3.400);
  EXPECT_EQ(metric("cifar10-ablation", "routing-h4-l2-w1024"), 2.950);
  EXPECT_EQ(metric("cifar10-ablation", "routing-h8-l8-w1024"), 3.131);
  EXPECT_EQ(rate("routing-h8-l12-w1024"), 1.711);
  EXPECT_EQ(metric("wikitext103", "local"), 19.8);
  EXPECT_EQ(metric("wikitext103", "routing"), 15.8);
  EXPECT_EQ(metric("wikitext103", "transformer-xl"), 18.3);
  EXPECT_EQ(metric("wikitext103", "adaptive-transformer"), 20.6);
  EXPECT_EQ(metric("wikitext103", "adaptive-input"), 18.7);
  EXPECT_EQ(metric("enwik8", "t64"), 1.13);
  EXPECT_EQ(metric("enwik8", "routing"), 0.99);
  EXPECT_EQ(metric("enwik8", "transformer-xl"), 0.99);
  EXPECT_EQ(metric("enwik8", "sparse-transformer"), 0.99);
  EXPECT_EQ(metric("enwik8", "adaptive-transformer"), 0.98);
  EXPECT_FALSE(table_row(table_spec("enwik8"), "reformer").paper_metric) << "not in the paper";
  EXPECT_EQ(metric("imagenet64", "local"), 3.48);
  EXPECT_EQ(metric("imagenet64", "sparse-transformer"), 3.44);
  EXPECT_EQ(metric("imagenet64", "reformer"), 3.65);
  EXPECT_FALSE(table_row(table_spec("imagenet64"), "image-transformer").paper_metric) << "the paper's is local";
  EXPECT_EQ(metric("pg19", "transformer-xl"), 36.3);
  EXPECT_EQ(metric("pg19", "compressive-transformer"), 33.6);
  EXPECT_EQ(metric("pg19", "routing"), 33.2);
  EXPECT_EQ(metric("step-time", "local"), 1.231);
  EXPECT_EQ(metric("step-time", "routing"), 0.7236);
  double sum = 0.0;
  double rates = 0.0;
  for (const TableRow& row : table_spec("cifar10-ablation").rows) {
    sum += *row.paper_metric;
    rates += *row.paper_steps_per_second;
  }
  // Added up from the paper's source with awk.
  EXPECT_NEAR(sum, 81.772, 1e-9);
  EXPECT_NEAR(rates, 143.753, 1e-9);
}

TEST(Tables, EveryRowHasAValidConfigurationAtBothScalesUnderEverySelection) {
  for (const TableSpec& spec : table_specs()) {
    for (const TableScale scale : {TableScale::tiny, TableScale::paper}) {
      std::set<std::int64_t> steps;
      for (const TableRow& row : spec.rows) {
        if (row.is_literature) {
          EXPECT_THROW(row_config(row, {.scale = scale}), ConfigError);
          continue;
        }
        for (const RoutingSelection selection :
             {RoutingSelection::balanced, RoutingSelection::nearest, RoutingSelection::threshold}) {
          const ExperimentConfig config = row_config(row, {.scale = scale, .selection = selection});
          // Rows of our own tables name their selection themselves.
          const bool own = !row.is_routed && config.attention.content == PatternKind::routing;
          const RoutingSelection used = own ? config.routing.routing().selection : selection;
          const bool future = (row.is_routed || own) && used == RoutingSelection::balanced;
          EXPECT_TRUE(!own || spec.name == "text" || row.id == to_string(used)) << spec.name << " " << row.id;
          EXPECT_EQ(validity_label(config), future ? "selection reads the future" : "causal") << spec.name << row.id;
          EXPECT_EQ(config.attention.content == PatternKind::routing, row.is_routed || own)
              << spec.name << " " << row.id;
          if (row.is_routed) {
            EXPECT_EQ(config.routing.routing().selection, selection);
          }
          steps.insert(config.train.steps);
        }
      }
      // At paper scale the systems of others keep what their papers print.
      const bool of_others = std::set<std::string>{"wikitext103", "enwik8", "imagenet64", "pg19"}.contains(spec.name);
      if (scale == TableScale::paper && of_others) {
        EXPECT_GT(steps.size(), 1U) << spec.name;
      } else {
        EXPECT_EQ(steps.size(), 1U) << spec.name << ": rows must have equal steps";
      }
    }
  }
}

TEST(Tables, RowsAtPaperScaleAreThePresetsOfThePaper) {
  using Keys = std::set<std::string>;
  const auto config = [](const char* table, const char* row, RoutingSelection selection = kPaperSelection) {
    return row_config(table_row(table_spec(table), row), {.scale = TableScale::paper, .selection = selection});
  };
  EXPECT_EQ(differences(config("cifar10-ablation", "routing-h4-l2-w1024"), resolve({.preset = "cifar10-paper"})),
            Keys());
  EXPECT_EQ(differences(config("cifar10-ablation", "routing-h8-l12-w512"), resolve({.preset = "cifar10-paper"})),
            (Keys{"attention.content_heads", "attention.content_layers", "routing.window"}));
  EXPECT_EQ(differences(config("cifar10-ablation", "random"), resolve({.preset = "cifar10-random"})), Keys());
  for (const std::string set : {"wikitext103", "enwik8", "imagenet64", "pg19"}) {
    EXPECT_EQ(differences(config(set.c_str(), "routing"), resolve({.preset = set + "-paper"})), Keys()) << set;
    EXPECT_EQ(differences(config(set.c_str(), "local"), resolve({.preset = set + "-local"})), Keys()) << set;
    // Rows beside the paper's begin a text as the paper's do; the preset is ours.
    const bool own_start = set == "wikitext103" || set == "pg19";
    EXPECT_EQ(
        differences(config(set.c_str(), "routing", RoutingSelection::threshold), resolve({.preset = set + "-causal"})),
        (own_start ? Keys{"name", "source", "model.start_symbol"} : Keys{"name", "source"}))
        << set;
  }
  EXPECT_EQ(differences(config("leak", "threshold"), resolve({.preset = "enwik8-causal"})), (Keys{"name", "source"}));
}

// Half of the depth and a quarter of sequence and windows.
TEST(Tables, TinyRowsOfCifarKeepTheProportionsOfThePaper) {
  const TableSpec& spec = table_spec("cifar10-ablation");
  for (const TableRow& row : spec.rows) {
    const ExperimentConfig tiny = row_config(row, {.scale = TableScale::tiny});
    const ExperimentConfig paper = row_config(row, {.scale = TableScale::paper});
    EXPECT_EQ(tiny.train.sequence_length * 4, paper.train.sequence_length);
    EXPECT_EQ(tiny.data.image_size, 16);
    EXPECT_EQ(tiny.model.layers * 2, paper.model.layers);
    for (std::int64_t layer = 0; layer < 12; ++layer) {
      const auto& small = attention_of_layer(tiny, layer / 2).head_groups;
      const auto& large = attention_of_layer(paper, layer).head_groups;
      ASSERT_EQ(small.size(), large.size()) << row.id << " layer " << layer;
      for (std::size_t group = 0; group < small.size(); ++group) {
        EXPECT_EQ(small[group].heads, large[group].heads) << row.id;
        ASSERT_EQ(small[group].pattern.index(), large[group].pattern.index()) << row.id;
        if (const auto* local = std::get_if<LocalPattern>(&small[group].pattern)) {
          EXPECT_EQ(local->window * 4, std::get<LocalPattern>(large[group].pattern).window);
          EXPECT_EQ(local->form, std::get<LocalPattern>(large[group].pattern).form);
        }
        if (const auto* routing = std::get_if<RoutingPattern>(&small[group].pattern)) {
          EXPECT_EQ(routing->window * 4, std::get<RoutingPattern>(large[group].pattern).window);
          EXPECT_EQ(routing->clusters, 6);
          EXPECT_TRUE(small[group].shared_query_key);
        }
        if (const auto* random = std::get_if<RandomPattern>(&small[group].pattern)) {
          EXPECT_EQ(random->window * 4, std::get<RandomPattern>(large[group].pattern).window);
        }
      }
    }
  }
}

TEST(Tables, SharedQkDiffersInItsKeysOnly) {
  const TableSpec& spec = table_spec("shared-qk");
  for (const TableScale scale : {TableScale::tiny, TableScale::paper}) {
    EXPECT_EQ(differences(row_config(table_row(spec, "shared"), {.scale = scale}),
                          row_config(table_row(spec, "separate"), {.scale = scale})),
              (std::set<std::string>{"routing.shared_query_key"}));
  }
}

TEST(Tables, UsersSettingsComeLast) {
  const TableRow& row = table_row(table_spec("cifar10-ablation"), "routing-h4-l8-w512");
  const ExperimentConfig config = row_config(row, {.settings = {"routing.window=32", "train.batch_size=1"}});
  EXPECT_EQ(config.routing.routing().window, 32);
  EXPECT_EQ(config.train.batch_size, 1);
  EXPECT_THROW(row_config(row, {.settings = {"routing.windo=32"}}), ConfigError);
}

TEST(Tables, UnknownNamesAreAnsweredWithTheNearest) {
  EXPECT_NE(message_of<ConfigError>([] { table_spec("cifar10-ablaton"); }).find("'cifar10-ablation'"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { table_row(table_spec("enwik8"), "locl"); }).find("did you mean 'local'"),
            std::string::npos);
  EXPECT_THROW(parse_word<TableScale>("huge", "scale"), ConfigError);
  EXPECT_EQ(parse_word<TableScale>("paper", "scale"), TableScale::paper);
  EXPECT_THROW(parse_word<RoutingSelection>("balancd", "selection"), ConfigError);
  EXPECT_EQ(parse_word<RoutingSelection>("threshold", "selection"), RoutingSelection::threshold);
}

TEST(RowIdentity, NamesASelectionOnlyWhereItIsNotThePapers) {
  const TableSpec& spec = table_spec("enwik8");
  EXPECT_EQ(row_identity(table_row(spec, "routing"), RoutingSelection::balanced), "routing");
  EXPECT_EQ(row_identity(table_row(spec, "routing"), RoutingSelection::nearest), "routing-nearest");
  EXPECT_EQ(row_identity(table_row(spec, "local"), RoutingSelection::nearest), "local");
}

TEST(SelectRows, ReadsIdsNumbersRangesAndTheBest) {
  using Rows = std::vector<std::size_t>;
  const TableSpec& spec = table_spec("cifar10-ablation");
  EXPECT_EQ(select_rows(spec, "", {}).size(), 27U);
  EXPECT_EQ(select_rows(spec, "local", {}), Rows{1});
  EXPECT_EQ(select_rows(spec, "6-8,1,routing-h2-l2-w512,7", {}), (Rows{0, 3, 5, 6, 7}));
  EXPECT_EQ(select_rows(spec, "best:2,local", {20, 4, 9}), (Rows{1, 4, 20}));
  EXPECT_EQ(select_rows(table_spec("imagenet64"), "", {}), (Rows{4, 5, 6, 7, 8})) << "without literature";
  EXPECT_EQ(select_rows(table_spec("imagenet64"), "3-5", {}), Rows{4}) << "ranges pass over literature";
}

TEST(SelectRows, RefusesWhatIsNotThere) {
  const TableSpec& spec = table_spec("enwik8");
  const auto refusal = [&](const std::string& text) {
    return message_of<ConfigError>([&] { select_rows(spec, text, {5}); });
  };
  EXPECT_NE(refusal("8").find("rows 1 to 7"), std::string::npos);
  EXPECT_NE(refusal("0").find("rows 1 to 7"), std::string::npos);
  EXPECT_NE(refusal("5-2").find("FIRST-LAST"), std::string::npos);
  EXPECT_NE(refusal("best:2").find("only 1 routed rows"), std::string::npos);
  EXPECT_NE(refusal("best:x").find("best:K"), std::string::npos);
  EXPECT_NE(refusal("rooting").find("'routing'"), std::string::npos);
  EXPECT_NE(refusal("t64").find("published figure"), std::string::npos);
  EXPECT_NE(refusal(",").find("names no row"), std::string::npos);
}

}  // namespace
}  // namespace routing::table_spec_test
