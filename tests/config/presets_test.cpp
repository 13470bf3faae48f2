#include "routing/config/presets.h"

#include "routing/config/keys.h"
#include "routing/config/resolve.h"
#include "routing/config/toml.h"
#include "support/experiment_cases.h"
#include "test_paths.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace routing::presets_test {
namespace {

// Which keys of two configurations differ.
std::set<std::string> differences(const ExperimentConfig& first, const ExperimentConfig& second) {
  std::set<std::string> keys;
  for (const std::string& key : experiment_keys()) {
    if (get_key(first, key) != get_key(second, key)) keys.insert(key);
  }
  return keys;
}

ExperimentConfig preset_of(const std::string& name) {
  return resolve({.preset = name});
}

TEST(Presets, AreTheFilesOfTheirFolder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(ROUTING_SOURCE_DIR) + "/presets")) {
    ASSERT_EQ(entry.path().extension(), ".toml");
    const std::string name = entry.path().stem();
    files.insert(name);
    std::ifstream file(entry.path());
    EXPECT_EQ(preset_text(name), std::string(std::istreambuf_iterator<char>(file), {})) << name;
  }
  EXPECT_EQ(std::vector<std::string>(files.begin(), files.end()), preset_names());
  EXPECT_EQ(embedded_presets().size(), files.size());
  EXPECT_GE(files.size(), 3U);
}

TEST(Presets, AllAreValidAndCarryTheirName) {
  for (const std::string& name : preset_names()) {
    ExperimentConfig config;
    ASSERT_EQ(refusal_of([&] { apply_toml(config, preset_text(name), name); }), "accepted");
    EXPECT_EQ(refusal_of([&] { validate(config); }), "accepted") << name;
    EXPECT_EQ(config.name, name);
  }
}

TEST(Presets, AllComeBackFromTheirResolvedFile) {
  for (const std::string& name : preset_names()) {
    ExperimentConfig read = unlike_defaults();
    apply_toml(read, to_toml(preset_of(name)), name);
    read.routing.group.heads = preset_of(name).routing.group.heads;  // has no key: attention.content_heads is used
    EXPECT_EQ(read, preset_of(name)) << name;
  }
}

TEST(Presets, AllBeginWithACommentThatSaysWhatTheyAre) {
  for (const std::string& name : preset_names()) EXPECT_GE(preset_summary(name).size(), 20U) << name;
  EXPECT_EQ(preset_summary("tiny-enwik8-local"),
            "The same model as tiny-enwik8 with local heads only: what routing has to beat.");
}

TEST(Presets, AnUnknownOneNamesTheNearest) {
  const std::string message =
      "preset: 'tiny-enwk8' is not known; did you mean 'tiny-enwik8'? `routing presets` lists all";
  EXPECT_EQ(refusal_of([] { preset_text("tiny-enwk8"); }), message);
  EXPECT_EQ(refusal_of([] { preset_summary("tiny-enwk8"); }), message);
}

TEST(Presets, TinyEnwik8IsAsDescribed) {
  const ExperimentConfig config = preset_of("tiny-enwik8");
  EXPECT_EQ(config.model.vocab_size, 256);
  EXPECT_EQ(config.model.layers, 4);
  EXPECT_EQ(config.model.width, 256);
  EXPECT_EQ(config.model.feedforward_width, 1024);
  EXPECT_EQ(config.train.sequence_length, 2048);
  EXPECT_EQ(config.train.batch_size, 4);
  EXPECT_EQ(config.train.steps, 1000);
  EXPECT_EQ(config.train.optimizer, OptimizerKind::adam);
  EXPECT_EQ(config.train.beta1, 0.9);
  EXPECT_EQ(config.train.beta2, 0.98);
  EXPECT_EQ(config.train.learning_rate, 2e-3);
  EXPECT_EQ(config.model.initial_scale, 1.0);
  EXPECT_TRUE(config.patterns.local.recency);
  EXPECT_EQ(config.train.schedule, ScheduleKind::cosine);
  EXPECT_EQ(config.train.warmup_steps, 100);
  EXPECT_EQ(config.train.clip, 1.0);
  EXPECT_EQ(validity_label(config), "causal");
  for (std::int64_t layer = 0; layer < 4; ++layer) {
    const AttentionConfig attention = attention_of_layer(config, layer);
    ASSERT_EQ(attention.head_groups.size(), layer < 2 ? 1U : 2U);
    EXPECT_EQ(attention.head_groups[0].heads, 8);
    EXPECT_EQ(head_dim(attention), 32);
    EXPECT_EQ(std::get<LocalPattern>(attention.head_groups[0].pattern).window, 128);
    if (layer < 2) continue;
    EXPECT_EQ(attention.head_groups[1].heads, 2);
    EXPECT_TRUE(attention.head_groups[1].added);
    EXPECT_EQ(attention.head_groups[1].key_shift, 1);
    EXPECT_TRUE(attention.head_groups[1].learned_scale);
    EXPECT_EQ(attention.head_groups[1].scale, 0.5);
    const auto& routing = std::get<RoutingPattern>(attention.head_groups[1].pattern);
    EXPECT_EQ(routing.selection, RoutingSelection::threshold);
    EXPECT_EQ(routing.clusters, 16);
    EXPECT_EQ(routing.window, 128);
  }
}

TEST(Presets, TheLocalTwinDiffersInItsHeadsOnly) {
  EXPECT_EQ(differences(preset_of("tiny-enwik8"), preset_of("tiny-enwik8-local")),
            (std::set<std::string>{"name", "attention.content"}));
  const AttentionConfig layer = attention_of_layer(preset_of("tiny-enwik8-local"), 0);
  ASSERT_EQ(layer.head_groups.size(), 1U);
  EXPECT_EQ(layer.head_groups[0].heads, 8);
}

TEST(Presets, EveryDataSetHasTheRowsOfThePaper) {
  for (const std::string set : {"enwik8", "wikitext103", "pg19", "cifar10", "imagenet64"}) {
    for (const std::string row : {"paper", "code", "causal", "local", "lsh", "strided"}) {
      EXPECT_EQ(preset_of(set + "-" + row).name, set + "-" + row);
    }
    EXPECT_EQ(preset_of("tiny-" + set).name, "tiny-" + set);
  }
}

TEST(Presets, TheirPageNamesOnlyThoseThatExist) {
  std::ifstream file(std::string(ROUTING_SOURCE_DIR) + "/docs/presets.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  static const std::regex quoted("`((?:tiny-)?(?:enwik8|wikitext103|pg19|cifar10|imagenet64)-[a-z-]+|quickstart)`");
  std::set<std::string> named;
  for (std::sregex_iterator match(page.begin(), page.end(), quoted), end; match != end; ++match) {
    named.insert((*match)[1]);
  }
  EXPECT_GE(named.size(), 16U) << "the rows of the paper's tables, and quickstart";
  for (const std::string& name : named) EXPECT_EQ(refusal_of([&] { preset_text(name); }), "accepted");
}

// Where id 0 is the end of a line or a document, models of ours begin with a symbol of their own; what is the paper's
// or the authors' begins as theirs.
TEST(Presets, OfOursForWordsAndSubwordsHaveAStartSymbolOfTheirOwn) {
  for (const std::string& name : preset_names()) {
    const ExperimentConfig config = preset_of(name);
    const bool eos_is_zero = config.data.tokens == TokenKind::words || config.data.tokens == TokenKind::subwords;
    const bool theirs = name.ends_with("-paper") || name.ends_with("-code") || config.source.starts_with("paper");
    EXPECT_EQ(config.model.start_symbol == StartSymbol::own, eos_is_zero && !theirs) << name;
  }
}

// What a likelihood of each is worth.
TEST(Presets, OnlyTheAuthorsSelectionReadsTheFuture) {
  for (const std::string& name : preset_names()) {
    const bool paper = name.ends_with("-paper") || name.ends_with("-paper-adaptive");
    const bool authors = (paper || name.ends_with("-code")) && !name.ends_with("-local-code");
    EXPECT_EQ(validity_label(preset_of(name)), authors ? "selection reads the future" : "causal") << name;
  }
}

TEST(Presets, TwinsDifferInWhatTheirNamesSay) {
  using Keys = std::set<std::string>;
  for (const std::string set : {"enwik8", "wikitext103", "pg19", "cifar10", "imagenet64"}) {
    const ExperimentConfig causal = preset_of(set + "-causal");
    for (const std::string& key : differences(preset_of(set + "-paper"), causal)) {
      const bool own_start = key == "model.start_symbol" && (set == "wikitext103" || set == "pg19");
      EXPECT_TRUE(key.starts_with("routing.") || key == "name" || key == "source" || own_start) << set << " " << key;
    }
    EXPECT_EQ(differences(causal, preset_of(set + "-lsh")), (Keys{"name", "attention.content"})) << set;
    EXPECT_EQ(differences(causal, preset_of(set + "-strided")), (Keys{"name", "attention.content"})) << set;
    const auto& lsh = std::get<LshPattern>(causal.patterns.lsh.pattern);
    EXPECT_EQ(lsh.buckets, causal.routing.routing().clusters) << set;
    EXPECT_EQ(lsh.window, causal.routing.routing().window) << set;
    for (const std::string& key : differences(preset_of(set + "-paper"), preset_of(set + "-local"))) {
      EXPECT_TRUE(Keys({"name", "source", "attention.content", "model.layers"}).contains(key)) << set << " " << key;
    }
  }
  for (const std::string name : {"tiny-wikitext103", "tiny-cifar10"}) {
    EXPECT_EQ(differences(preset_of(name), preset_of(name + "-local")), (Keys{"name", "attention.content"}));
    EXPECT_EQ(differences(preset_of(name), preset_of(name + "-full")), (Keys{"name", "attention.content"}));
  }
}

// Positions of images come from embeddings (docs/facts.md C5, A10).
TEST(Presets, HeadsOfImagesHaveNoRelativePositionsAndLocalHeadsOfTextDo) {
  for (const std::string& name : preset_names()) {
    const ExperimentConfig config = preset_of(name);
    const bool image = config.model.image_height > 0;
    for (const LayerRule& rule : layer_rules(config)) {
      for (const HeadGroupConfig& group : rule.head_groups) {
        if (!image && !std::holds_alternative<LocalPattern>(group.pattern)) continue;
        // Local heads of these know distances by recency alone, which is faster.
        static const std::set<std::string> by_recency{"table-text", "quickstart-small", "quickstart-medium", "my-text",
                                                      "my-text-medium"};
        if (by_recency.contains(name)) {
          EXPECT_TRUE(group.recency);
          continue;
        }
        if (name == "enwik8-sparse-transformer") {
          EXPECT_EQ(config.model.positions, PositionKind::factored) << "which its authors have instead";
          continue;
        }
        EXPECT_EQ(group.relative, image ? RelativePosition::none : RelativePosition::true_offset) << name;
      }
    }
    if (!image) continue;
    EXPECT_EQ(config.train.sequence_length, 3 * config.model.image_height * config.model.image_width) << name;
  }
}

// Sections 5.2 and 5.3: the models of text use relative positions; inside clusters the authors count ranks (A10).
TEST(Presets, RoutedHeadsOfThePapersTextModelsHaveRankPositionsUpToTheirWindow) {
  for (const std::string set : {"enwik8", "wikitext103", "pg19"}) {
    for (const std::string twin : {"-paper", "-causal", "-code"}) {
      const ExperimentConfig config = preset_of(set + twin);
      const HeadGroupConfig routed = attention_of_layer(config, config.model.layers - 1).head_groups.back();
      ASSERT_TRUE(std::holds_alternative<RoutingPattern>(routed.pattern)) << set << twin;
      EXPECT_EQ(routed.relative, RelativePosition::rank) << set << twin;
      const std::int64_t window = std::get<RoutingPattern>(routed.pattern).window;
      EXPECT_EQ(routed.max_relative, twin == "-code" ? 513 : window) << set << twin;
    }
  }
}

// As printed (sum) a centroid grows with the batch, and one wins every token.
TEST(Presets, NoCentroidOfAPresetIsASumOfTokens) {
  for (const std::string& name : preset_names()) {
    EXPECT_EQ(preset_of(name).routing.routing().update, CentroidUpdate::mean) << name;
  }
}

// Table 1: heads, layers and window of its first three rows, and one routed row by --set.
TEST(Presets, CifarRowsAreThoseOfTheTable) {
  const auto content = [](const ExperimentConfig& config, std::int64_t layer) {
    return attention_of_layer(config, layer).head_groups.back();
  };
  const ExperimentConfig full = preset_of("cifar10-full");
  EXPECT_EQ(attention_of_layer(full, 0).head_groups.size(), 1U);
  EXPECT_EQ(content(full, 0).heads, 8);
  EXPECT_TRUE(std::holds_alternative<FullPattern>(content(full, 0).pattern));
  const ExperimentConfig random = preset_of("cifar10-random");
  EXPECT_TRUE(std::holds_alternative<LocalPattern>(content(random, 3).pattern));
  EXPECT_EQ(content(random, 4).heads, 4);
  EXPECT_EQ(std::get<RandomPattern>(content(random, 4).pattern), (RandomPattern{.groups = 6, .window = 512}));
  const ExperimentConfig row =
      resolve({.preset = "cifar10-paper",
               .settings = {"attention.content_heads=8", "attention.content_layers=top 12", "routing.window=512"}});
  for (std::int64_t layer = 0; layer < 12; ++layer) {
    ASSERT_EQ(attention_of_layer(row, layer).head_groups.size(), 1U);
    EXPECT_EQ(content(row, layer).heads, 8);
    EXPECT_EQ(std::get<RoutingPattern>(content(row, layer).pattern).window, 512);
    EXPECT_EQ(std::get<RoutingPattern>(content(row, layer).pattern).clusters, 6);
  }
}

TEST(Presets, QuickstartIsTinyEnwik8InSmallerStepsOnAnyFile) {
  EXPECT_EQ(differences(preset_of("tiny-enwik8"), preset_of("quickstart")),
            (std::set<std::string>{"name", "train.batch_size", "data.split"}));
  EXPECT_EQ(preset_of("quickstart").data.split, "rest/200000/2000000");
}

TEST(Presets, QuickstartSmallIsTableTextInShorterStepsOnAnyFile) {
  EXPECT_EQ(differences(preset_of("table-text"), preset_of("quickstart-small")),
            (std::set<std::string>{"name", "data.split", "train.steps", "train.sequence_length", "train.learning_rate",
                                   "train.eval_tokens", "train.keep_checkpoints", "train.sample_every"}));
  EXPECT_EQ(preset_of("quickstart-small").data.split, "rest/200000/2000000");
}

TEST(Presets, QuickstartMediumIsQuickstartSmallButWider) {
  EXPECT_EQ(differences(preset_of("quickstart-small"), preset_of("quickstart-medium")),
            (std::set<std::string>{"name", "model.width", "model.feedforward_width"}));
  EXPECT_GT(preset_of("quickstart-medium").model.width, preset_of("quickstart-small").model.width);
}

TEST(Presets, TinyCopyIsRoutedInTheEncoderAndBetweenSourceAndTarget) {
  const ExperimentConfig config = preset_of("tiny-copy");
  EXPECT_EQ(config.data.format, DataFormat::copy);
  EXPECT_EQ(config.train.source_length, 512);
  EXPECT_EQ(config.train.sequence_length, 513);
  EXPECT_EQ(validity_label(config), "causal");
  const AttentionConfig encoder = attention_of_encoder_layer(config, 0);
  const AttentionConfig cross = cross_attention_of_layer(config, 0);
  for (const AttentionConfig* attention : {&encoder, &cross}) {
    const HeadGroupConfig& routed = attention->head_groups.back();
    EXPECT_EQ(routed.heads, attention == &cross ? 4 : 2) << attention->name;
    EXPECT_EQ(std::get<RoutingPattern>(routed.pattern).selection, RoutingSelection::threshold) << attention->name;
    EXPECT_FALSE(routed.shared_query_key) << attention->name;
  }
  EXPECT_EQ(encoder.kind, AttentionKind::bidirectional_self);
  EXPECT_EQ(cross.kind, AttentionKind::cross);
}

TEST(Presets, TinyReverseIsTinyCopyOnAnotherTask) {
  EXPECT_EQ(differences(preset_of("tiny-copy"), preset_of("tiny-reverse")),
            (std::set<std::string>{"name", "data.format"}));
}

}  // namespace
}  // namespace routing::presets_test
