// What heads read against dense attention, tokens as text, and plans of a model as squares.
#include "lab/heads/head_reading.h"

#include "lab/figures/model_patterns.h"
#include "lab/figures/pattern_gallery.h"
#include "lab/heads/token_text.h"
#include "routing/core/error.h"
#include "routing/data/tokenizers/byte_tokenizer.h"
#include "routing/model/transformer.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <unistd.h>

namespace routing::head_reading_test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTokens = 24;

ModelProbes probes_of(Transformer& model) {
  model->eval();
  return model->probe(random_tokens(1, kTokens, 256, 5), {});
}

// Row `query` of softmax(scale q k^T) over what the plan's dense counts show, a key as often as it is shown.
std::vector<double> dense_row(const GroupProbe& group, std::int64_t head, std::int64_t query) {
  const at::Tensor counts = group.plan.to_dense_counts()[0][head][query].to(at::kDouble);
  const at::Tensor q = group.queries[0][head][query].to(at::kDouble);
  const at::Tensor logits = at::mv(group.keys[0][head].to(at::kDouble), q) * group.scale;
  const at::Tensor weights = counts * at::exp(logits);
  const at::Tensor row = (weights / weights.sum()).contiguous();
  return {row.data_ptr<double>(), row.data_ptr<double>() + row.numel()};
}

TEST(HeadReading, WeightsOfRoutedHeadsAreThoseOfDenseAttentionAtTheTokensThatKeysCarry) {
  for (const ContentCase& content : content_cases()) {
    if (content.config.attention.content != PatternKind::routing) continue;
    Transformer model(content.config, at::kFloat);
    const ModelProbes probes = probes_of(model);
    for (const std::int64_t token : {std::int64_t{0}, std::int64_t{1}, kTokens / 2, kTokens - 1}) {
      const std::vector<HeadReading> readings = read_heads(probes, {.token = token});
      ASSERT_EQ(readings.size(), 8U);
      for (const HeadReading& reading : readings) {
        if (!reading.routed) continue;
        const GroupProbe& group = probes[static_cast<std::size_t>(reading.layer)][1];
        ASSERT_EQ(group.pattern_name, "routing");
        ASSERT_TRUE(group.merge == Merge::lse && group.relative == RelativePosition::none && !group.recency.defined());
        const std::vector<double> dense = dense_row(group, reading.head - group.first_head, token);
        std::vector<double> mine(dense.size(), 0.0);
        for (const ReadToken& read : reading.reads) {
          EXPECT_LT(read.token, token) << "the predicted token is not read";
          mine[static_cast<std::size_t>(read.token + 1)] = read.weight;
        }
        for (std::size_t key = 0; key < dense.size() && !reading.reads.empty(); ++key) {
          EXPECT_NEAR(mine[key], dense[key], 1e-12) << content.name << " key " << key;
        }
      }
    }
  }
}

TEST(HeadReading, ChoosesLayerAndHeadAndNamesTheRangeOfWhatIsNotThere) {
  Transformer model(small_experiment(), at::kFloat);
  const ModelProbes probes = probes_of(model);
  const std::vector<HeadReading> one = read_heads(probes, {.token = 9, .layer = 1, .head = 2});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].layer, 1);
  EXPECT_EQ(one[0].head, 2);
  EXPECT_EQ(one[0].pattern, "routing");
  EXPECT_EQ(read_heads(probes, {.token = 9, .head = 0})[1].pattern, "local");
  const auto message = [&](const ReadingQuestion& question) {
    return message_of<ConfigError>([&] { read_heads(probes, question); });
  };
  EXPECT_EQ(message({.token = 24}), "there is no position 24; the sequence has positions 0 to 23");
  EXPECT_EQ(message({.layer = 2}), "there is no layer 2; the model has layers 0 to 1");
  EXPECT_EQ(message({.head = 4}), "there is no head 4; the layer has heads 0 to 3");
}

TEST(HeadReading, TopIsByWeightAndThenByPlace) {
  const HeadReading reading{.reads = {{-1, 0.2}, {3, 0.5}, {4, 0.2}, {7, 0.1}}};
  EXPECT_EQ(reading.top(3), (std::vector<ReadToken>{{3, 0.5}, {-1, 0.2}, {4, 0.2}}));
  EXPECT_EQ(reading.top(9).size(), 4U);
}

// A token's clusters are the groups in whose lists its position stands.
TEST(HeadReading, ClustersOfTokensAreThoseWhoseListsHoldThem) {
  for (const ContentCase& content : content_cases()) {
    Transformer model(content.config, at::kFloat);
    const ModelProbes probes = probes_of(model);
    const auto clusters = token_clusters(probes, 1, 3);
    if (content.config.attention.content != PatternKind::routing) {
      EXPECT_TRUE(clusters.empty());
      continue;
    }
    ASSERT_EQ(clusters.size(), static_cast<std::size_t>(kTokens));
    const Plan& plan = probes[1][1].plan;
    const auto* order = plan.query_order.data_ptr<std::int32_t>();
    for (std::int64_t position = 0; position < kTokens; ++position) {
      std::vector<std::int32_t> expected;
      for (std::int32_t cluster = 0; cluster < 4; ++cluster) {
        const GroupRange range = group_range(plan, 4 + cluster);  // head 3 is the second of its group
        if (std::count(order + range.q_begin, order + range.q_end, position) > 0) expected.push_back(cluster);
      }
      EXPECT_EQ(clusters[static_cast<std::size_t>(position)], expected) << content.name;
    }
    const HeadReading reading = read_heads(probes, {.token = 7, .layer = 1, .head = 3}).at(0);
    EXPECT_EQ(reading.clusters, clusters[7]);
    EXPECT_TRUE(token_clusters(probes, 1, 0).empty()) << "a local head";
  }
}

std::vector<std::int32_t> bytes_of(const std::string& text) {
  std::vector<std::int32_t> ids;
  ByteTokenizer().encode(text, ids);
  return ids;
}

TEST(TokenText, BytesOfACharacterBelongToItsFirst) {
  const std::vector<TokenText> texts = token_texts(ByteTokenizer(), bytes_of("a\xc3\xa9\n\xff\xc3"));
  ASSERT_EQ(texts.size(), 6U);
  EXPECT_EQ(texts[0].shown, "a");
  EXPECT_EQ(texts[1].shown, "\xc3\xa9");
  EXPECT_EQ(texts[1].label, "\xc3\xa9");
  EXPECT_EQ(texts[2].shown, "");
  EXPECT_EQ(texts[2].label, "\xc3\xa9+1");
  EXPECT_EQ(texts[3].shown, "\n");
  EXPECT_EQ(texts[3].label, "\\n");
  EXPECT_EQ(texts[4].label, "\\xff");
  EXPECT_EQ(texts[5].shown, "\\xc3") << "half a character at the end";
}

TEST(TokenText, FindsTheTokenInWhichATextBegins) {
  EXPECT_EQ(find_in_tokens(ByteTokenizer(), bytes_of("to be or not to be"), "not"), 9);
  EXPECT_EQ(find_in_tokens(ByteTokenizer(), bytes_of("to be or not to be"), "to"), 0);
  EXPECT_EQ(find_in_tokens(ByteTokenizer(), bytes_of("to be"), "bee"), -1);
  EXPECT_EQ(find_in_tokens(ByteTokenizer(), bytes_of("to be"), ""), -1);
}

TEST(TokenText, ValuesOfImagesAreNamedByRowColumnAndChannel) {
  EXPECT_EQ(image_token_label(0, 32), "row 0 column 0 red");
  EXPECT_EQ(image_token_label(3 * 32 * 2 + 3 * 5 + 2, 32), "row 2 column 5 blue");
}

TEST(ModelPatterns, SquaresAreTheDenseMasksOfTheModelsPlans) {
  Transformer model(small_experiment(), at::kFloat);
  const at::Tensor tokens = random_tokens(1, kTokens, 256, 5);
  const PatternFigure figure = model_patterns(*model, tokens, {.title = "title"});
  ASSERT_EQ(figure.rows.size(), 2U);
  EXPECT_EQ(figure.rows[1].label, "layer 1");
  ASSERT_EQ(figure.rows[0].panels.size(), 2U) << "the first head of each group";
  EXPECT_EQ(figure.rows[0].panels[0].title, "head 0: local");
  EXPECT_EQ(figure.rows[0].panels[1].title, "head 2: routing");
  EXPECT_EQ(model_patterns(*model, tokens, {.all_heads = true}).rows[0].panels.size(), 4U);
  const PatternFigure last = model_patterns(*model, tokens, {.layer = 1, .head = 3});
  ASSERT_EQ(last.rows.size(), 1U);
  const PatternPanel& panel = last.rows[0].panels.at(0);
  EXPECT_EQ(panel.title, "head 3: routing");
  EXPECT_EQ(panel.caption, "4 clusters, last 8 of its own");
  const at::Tensor counts = model->states()[1].self.plans[1].to_dense_counts()[0][1];
  std::int64_t read = 0;
  for (std::int64_t i = 0; i < kTokens; ++i) {
    for (std::int64_t j = 0; j < kTokens; ++j) {
      EXPECT_EQ(panel.count[static_cast<std::size_t>(i * kTokens + j)], counts[i][j].item<std::int32_t>());
      read += panel.count[static_cast<std::size_t>(i * kTokens + j)];
    }
  }
  EXPECT_GT(read, kTokens / 2);
  const auto message = [&](const ModelPatternsOptions& options) {
    return message_of<ConfigError>([&] { model_patterns(*model, tokens, options); });
  };
  EXPECT_NE(message({.layer = 2}).find("layers 0 to 1"), std::string::npos);
  EXPECT_NE(message({.head = 4}).find("heads 0 to 3"), std::string::npos);
  EXPECT_THROW(model_patterns(*model, random_tokens(1, 3, 256, 5), {}), ConfigError);
}

TEST(ModelPatterns, CaptionsSayWhatIsRead) {
  EXPECT_EQ(pattern_caption({.pattern = LocalPattern{.window = 8}}), "i - 8 < j <= i");
  EXPECT_EQ(
      pattern_caption({.pattern = RoutingPattern{.selection = RoutingSelection::balanced, .clusters = 3, .window = 5}}),
      "3 clusters of their best 5");
  EXPECT_EQ(pattern_caption({.pattern = LshPattern{.buckets = 4, .window = 8}}), "4 buckets, last 8 of its own");
  const auto blocks = [](std::int64_t flange) {
    return pattern_caption({.pattern = LocalPattern{.form = LocalForm::block, .window = 8, .flange = flange}});
  };
  EXPECT_EQ(blocks(0), "own block of 8");
  EXPECT_EQ(blocks(1), "own and previous block of 8");
  EXPECT_EQ(blocks(2), "own and 2 previous blocks of 8");
  EXPECT_EQ(pattern_caption({.pattern = FixedPattern{.stride = 8, .summary = 2}}), "last 2 of every 8 tokens");
  EXPECT_EQ(pattern_caption({.pattern = Local2dPattern{.rows = 2, .columns = 3, .above = 4, .beside = 5}}),
            "blocks of 2 x 3 pixels, 4 rows above, 5 columns beside");
}

TEST(UsualPatternTokens, AreTwiceTheLargestWindowSoThatItsEndIsSeen) {
  ExperimentConfig config = small_experiment();
  std::get<LocalPattern>(config.patterns.local.pattern).window = 48;
  config.routing.routing().window = 20;
  EXPECT_EQ(usual_pattern_tokens(config), 96);
  config.routing.routing().window = 60;
  EXPECT_EQ(usual_pattern_tokens(config), 120) << "a window of a cluster counts as well";
  std::get<LocalPattern>(config.patterns.local.pattern).window = 5000;
  EXPECT_EQ(usual_pattern_tokens(config), kLongestGallery);
  config.model.positions = PositionKind::learned;
  EXPECT_EQ(usual_pattern_tokens(config), 32) << "no more than positions have rows";
  ExperimentConfig image = small_experiment("local2d");
  EXPECT_EQ(usual_pattern_tokens(image), 2 * 3 * (2 + 1) * 5) << "two and one rows, 5 pixels wide";
  image.model.image_height = 4;
  EXPECT_EQ(usual_pattern_tokens(image), 60) << "the whole image";
}

TEST(DrawableLabel, IsTheLabelOrTheBytesThatNoFontCanShow) {
  const std::string text = "a \xc3\xa9\xf3\xbf\xbf\xbd";  // the last one is of private use: no font has it
  const ByteTokenizer tokenizer;
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  const std::vector<TokenText> tokens = token_texts(tokenizer, ids);
  std::vector<std::string> labels;
  for (const TokenText& token : tokens) labels.push_back(drawable_label(token));
  EXPECT_EQ(labels,
            (std::vector<std::string>{"a", "\u2423", "\u00e9", "\u00e9+1", "\\xf3", "\\xbf", "\\xbf", "\\xbd"}));
}

}  // namespace
}  // namespace routing::head_reading_test
