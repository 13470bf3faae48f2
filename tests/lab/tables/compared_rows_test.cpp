// Rows of the systems that the paper compares with: what makes them comparable with ours at tiny scale.
#include "lab/tables/table_spec.h"
#include "lab/tables/table_terms.h"
#include "routing/attention/patterns/pattern.h"
#include "routing/config/parameter_count.h"
#include "routing/config/resolve.h"
#include "routing/ops/attend/visibility.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace routing::compared_rows_test {
namespace {

const std::vector<std::string> kTables{"wikitext103", "enwik8", "imagenet64", "pg19"};

// Rows whose presets bear their name: those of others.
std::vector<const TableRow*> compared_rows(const TableSpec& spec) {
  std::vector<const TableRow*> rows;
  for (const TableRow& row : spec.rows) {
    if (row.paper.preset == spec.name + "-" + row.id && row.id != spec.baseline) rows.push_back(&row);
  }
  return rows;
}

ExperimentConfig tiny(const TableRow& row) {
  return row_config(row, {.scale = TableScale::tiny});
}

std::int64_t tokens_per_step(const TrainConfig& train) {
  return train.batch_size * train.accumulation * train.sequence_length;
}

// Keys that a head of the group reads, mean over the positions of a sequence. What LSH heads read is taken of random
// vectors.
double keys_of_group(const HeadGroupConfig& group, std::int64_t tokens, std::int64_t dim) {
  at::manual_seed(1);
  const auto pattern = make_pattern(group, {.dim = dim, .options = at::TensorOptions().dtype(at::kFloat)});
  const Plan plan = pattern->plan(
      {.layout = self_layout(1, group.heads, tokens), .queries = at::randn({1, group.heads, tokens, dim})});
  return static_cast<double>(attended_pairs(plan)) / static_cast<double>(group.heads * tokens);
}

// Mean over layers and heads. A memory is read by every query of its segment, but for the first segment of a stream.
double keys_per_query(const ExperimentConfig& config) {
  double keys = 0.0;
  double heads = 0.0;
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    const AttentionConfig attention = attention_of_layer(config, layer);
    for (const HeadGroupConfig& group : attention.head_groups) {
      const auto count = static_cast<double>(group.heads);
      keys += count * keys_of_group(group, config.train.sequence_length, head_dim(attention));
      heads += count;
    }
  }
  return keys / heads + static_cast<double>(config.memory.length + config.memory.compressed);
}

TEST(ComparedRows, AreTheSystemsOfThePapersTables) {
  const std::vector<std::pair<std::string, std::set<std::string>>> expected{
      {"wikitext103", {"adaptive-transformer", "adaptive-input", "transformer-xl"}},
      {"enwik8", {"transformer-xl", "sparse-transformer", "adaptive-transformer", "reformer"}},
      {"imagenet64", {"image-transformer", "sparse-transformer", "reformer"}},
      {"pg19", {"transformer-xl", "compressive-transformer"}}};
  for (const auto& [table, ids] : expected) {
    std::set<std::string> found;
    for (const TableRow* row : compared_rows(table_spec(table))) {
      found.insert(row->id);
      EXPECT_EQ(row->tiny.preset, "tiny-" + table + "-" + row->id);
      EXPECT_FALSE(row->is_routed) << "--selection does not concern it";
    }
    EXPECT_EQ(found, ids) << table;
  }
}

TEST(ComparedRows, HaveThePrintedLayersAndHeadsAtPaperScale) {
  for (const std::string& table : kTables) {
    for (const TableRow* row : compared_rows(table_spec(table))) {
      const ExperimentConfig config = row_config(*row, {.scale = TableScale::paper});
      // "-" where the paper prints none.
      const auto expect = [&](std::int64_t value, const std::string& printed) {
        EXPECT_TRUE(printed == "-" || printed == std::to_string(value)) << table << " " << row->id << ": " << value;
      };
      expect(config.model.layers, row->columns[0]);
      expect(config.attention.heads, row->columns[1]);
    }
  }
}

TEST(ComparedRows, HaveTheSizesAndTheTokensPerStepOfTheLocalRow) {
  for (const std::string& table : kTables) {
    const TableSpec& spec = table_spec(table);
    const ExperimentConfig local = tiny(table_row(spec, "local"));
    for (const TableRow* row : compared_rows(spec)) {
      const ExperimentConfig config = tiny(*row);
      EXPECT_EQ(config.model.layers, local.model.layers) << table << " " << row->id;
      EXPECT_EQ(config.model.width, local.model.width) << table << " " << row->id;
      EXPECT_EQ(config.attention.heads, local.attention.heads) << table << " " << row->id;
      EXPECT_EQ(tokens_per_step(config.train), tokens_per_step(local.train)) << table << " " << row->id;
      EXPECT_EQ(config.train.learning_rate, local.train.learning_rate) << table << " " << row->id;
      // The keys of a Reformer are its queries; a convolution compresses.
      const bool other = row->id == "reformer" || row->id == "compressive-transformer";
      const double stack = static_cast<double>(count_parameters(config).stack());
      EXPECT_NEAR(stack / static_cast<double>(count_parameters(local).stack()), 1.0, other ? 0.15 : 0.08)
          << table << " " << row->id;
    }
  }
}

TEST(ComparedRows, ReadAboutAsManyKeysAsTheLocalRow) {
  for (const std::string& table : kTables) {
    const TableSpec& spec = table_spec(table);
    const double local = keys_per_query(tiny(table_row(spec, "local")));
    for (const TableRow* row : compared_rows(spec)) {
      if (row->id == "adaptive-input") continue;  // its heads are full, as its authors' are
      // A bucket of LSH is as large as the vectors make it, and a span begins with the window and learns.
      const bool by_content = row->id == "reformer";
      EXPECT_NEAR(keys_per_query(tiny(*row)) / local, 1.0, by_content ? 0.15 : 0.08) << table << " " << row->id;
    }
  }
}

// Issue point: does nearness in two dimensions pay at equal pairs? 182 and 186 values of CIFAR-10, 256 and 253 of
// ImageNet-64.
TEST(ComparedRows, WindowsInTwoDimensionsReadAsManyPairsAsThoseInRasterOrder) {
  const auto keys = [](const std::string& preset, const std::vector<std::string>& settings = {}) {
    return keys_per_query(resolve({.preset = preset, .settings = settings}));
  };
  EXPECT_NEAR(keys("tiny-cifar10-local2d"), 182.0, 1e-9);
  EXPECT_NEAR(keys("tiny-cifar10-local"), 186.03125, 1e-9);
  EXPECT_NEAR(keys("tiny-imagenet64-image-transformer"), 256.25, 1e-9);
  EXPECT_NEAR(keys("tiny-imagenet64", {"attention.content=local"}), 253.34375, 1e-9);
}

}  // namespace
}  // namespace routing::compared_rows_test
