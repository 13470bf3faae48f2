// The paper's models have as many weights as arithmetic says, and models are made with as many as are counted. Nothing
// is allocated: tensors are on the meta device.
#include "routing/config/presets.h"

#include "routing/config/parameter_count.h"
#include "routing/config/resolve.h"
#include "routing/core/error.h"
#include "routing/model/sequence_model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace routing::presets_test {
namespace {

ExperimentConfig preset_of(const std::string& name, const std::vector<std::string>& settings = {}) {
  return resolve({.preset = name, .settings = settings});
}

std::int64_t weights_of(const std::string& name, const std::vector<std::string>& settings = {}) {
  return count_parameters(preset_of(name, settings)).total();
}

// One layer of the authors' code (docs/facts.md A10, A12, A13, B3, C1, C6), written out.
struct CodeLayer {
  std::int64_t width = 0;
  std::int64_t hidden = 0;
  std::int64_t head_dim = 0;
  std::int64_t largest_offset = 0;  // 0: no relative positions
  bool routed = true;

  std::int64_t weights() const {
    const std::int64_t projections = 4 * width * width;  // queries, keys, values, output; unused key columns too
    const std::int64_t head_mix = head_dim * head_dim;
    const std::int64_t table = largest_offset > 0 ? (2 * largest_offset + 1) * head_dim : 0;
    const std::int64_t relative = (routed ? 4 : 2) * table;  // keys and values, of local and of routed heads
    const std::int64_t feedforward = hidden * width + hidden + width * hidden + width;
    const std::int64_t norms = 2 * (width + width);
    return projections + head_mix + relative + feedforward + norms;
  }
};

// Table, dense layer after it, output layer; another two dense layers where the table is narrower (C2, C3).
std::int64_t text_ends(std::int64_t vocabulary, std::int64_t width, std::int64_t embedding) {
  const std::int64_t in = vocabulary * embedding + embedding * width + width;
  const std::int64_t narrowing = embedding == width ? 0 : width * embedding + embedding;
  return in + narrowing + vocabulary * embedding + vocabulary;
}

double millions(std::int64_t weights) {
  return static_cast<double>(weights) / 1e6;
}

TEST(PresetWeights, Pg19CodeHasThoseOfTheCheckpoint) {
  const CodeLayer local{.width = 1032, .hidden = 4096, .head_dim = 129, .largest_offset = 513, .routed = false};
  CodeLayer routed = local;
  routed.routed = true;
  const std::int64_t expected = text_ends(98302, 1032, 1032) + 20 * local.weights() + 2 * routed.weights();
  EXPECT_EQ(expected, 490'701'884);
  EXPECT_EQ(weights_of("pg19-code"), expected);
  EXPECT_NEAR(millions(expected), 490.7, 0.05) << "docs/facts.md D; the authors count 8,256 numbers of centroids too";
}

TEST(PresetWeights, Pg19LocalCodeHasThoseOfTheBaseline) {
  const CodeLayer layer{.width = 1032, .hidden = 4096, .head_dim = 129, .largest_offset = 513, .routed = false};
  const std::int64_t expected = text_ends(98302, 1032, 1032) + 24 * layer.weights();
  EXPECT_EQ(weights_of("pg19-local-code"), expected);
  EXPECT_NEAR(millions(expected), 516.2, 0.05) << "docs/facts.md C3";
  const std::int64_t projection = 1032 * 1032 + 1032;
  EXPECT_EQ(weights_of("pg19-local"), expected - 24 * 129 * 129 - projection) << "without the two habits of the code";
}

TEST(PresetWeights, Enwik8CodeHasThoseOfTheFacts) {
  const CodeLayer layer{.width = 1024, .hidden = 3072, .head_dim = 128, .largest_offset = 513};
  const std::int64_t expected = text_ends(258, 1024, 1024) + 12 * layer.weights();
  EXPECT_EQ(expected, 134'012'162);
  EXPECT_EQ(weights_of("enwik8-code"), expected);
  EXPECT_NEAR(millions(expected), 134, 0.5);
  const std::int64_t geglu = 3 * 1024 * 3072 - (2 * 1024 * 3072 + 3072 + 1024);
  EXPECT_EQ(weights_of("enwik8-code", {"model.feedforward=geglu"}), expected + 12 * geglu);
  EXPECT_NEAR(millions(expected + 12 * geglu), 172, 0.5);
}

TEST(PresetWeights, WikiText103CodeHasThoseOfTheFacts) {
  const CodeLayer layer{.width = 1024, .hidden = 3072, .head_dim = 64, .largest_offset = 513};
  const std::int64_t expected = text_ends(267'736, 1024, 256) + 14 * layer.weights();
  EXPECT_EQ(expected, 288'527'576);
  EXPECT_EQ(weights_of("wikitext103-code"), expected);
  EXPECT_NEAR(millions(expected), 289, 0.5);
  const std::int64_t geglu = 3 * 1024 * 3072 - (2 * 1024 * 3072 + 3072 + 1024);
  EXPECT_EQ(weights_of("wikitext103-code", {"model.feedforward=geglu"}), expected + 14 * geglu);
  EXPECT_NEAR(millions(expected + 14 * geglu), 333, 0.6);
}

// The embeddings of images are not in these: only the stack.
TEST(PresetWeights, StacksOfImagesHaveThoseOfTheFacts) {
  const CodeLayer cifar{.width = 1024, .hidden = 2048, .head_dim = 128};
  const CodeLayer imagenet{.width = 1024, .hidden = 2048, .head_dim = 64};
  EXPECT_EQ(count_parameters(preset_of("cifar10-code")).stack(), 12 * cifar.weights());
  EXPECT_EQ(count_parameters(preset_of("imagenet64-code")).stack(), 24 * imagenet.weights());
  // Three tables of values and a start symbol, rows and columns for each channel, the output layer.
  const auto around = [](std::int64_t side) { return 3 * 256 * 1024 + 1024 + 2 * side * 3 * 1024 + 256 * 1024 + 256; };
  EXPECT_EQ(count_parameters(preset_of("cifar10-code")).total(), 12 * cifar.weights() + around(32));
  EXPECT_EQ(count_parameters(preset_of("imagenet64-code")).total(), 24 * imagenet.weights() + around(64));
  EXPECT_EQ(count_parameters(preset_of("cifar10-code")).total(), 102'192'384) << "docs/facts.md D: 102 M";
  EXPECT_EQ(count_parameters(preset_of("imagenet64-code")).total(), 203'040'000) << "docs/facts.md D: 203 M";
}

// One layer of the systems that the paper compares with: projections of all heads, relative tables of keys and values,
// feed-forward layer, norms.
struct OthersLayer {
  std::int64_t width = 0;
  std::int64_t hidden = 0;
  std::int64_t head_dim = 0;
  std::int64_t largest_offset = 0;  // 0: no relative positions
  std::int64_t projections = 4;     // queries, keys, values, output; of shared queries and keys 3

  std::int64_t weights() const {
    const std::int64_t table = largest_offset > 0 ? 2 * (2 * largest_offset + 1) * head_dim : 0;
    return projections * width * width + table + 2 * width * hidden + hidden + width + 4 * width;
  }
};

// Values of three channels and a start symbol, rows and columns for each channel, the output layer.
std::int64_t image_ends(std::int64_t side, std::int64_t width) {
  return 3 * 256 * width + width + 2 * side * 3 * width + 256 * width + 256;
}

// Dai et al. 2019, Table 2: 277 M. Their map of positions has 1,024 x 1,024 numbers per layer, our tables 512,256.
TEST(PresetWeights, TransformerXlOfEnwik8HasThoseOfDaiEtAlButForPositions) {
  const OthersLayer layer{.width = 1024, .hidden = 3072, .head_dim = 128, .largest_offset = 1000};
  const std::int64_t tied_ends = 256 * 1024 + 256;
  EXPECT_EQ(weights_of("enwik8-transformer-xl"), 24 * layer.weights() + tied_ends);
  const std::int64_t theirs = 24 * (layer.weights() - 2 * 2001 * 128 + 1024 * 1024) + tied_ends;
  EXPECT_NEAR(millions(theirs), 277, 1);
}

// Rae et al. print no width; a convolution over `rate` tokens for each layer is all that compression adds.
TEST(PresetWeights, CompressionAddsAConvolutionPerLayer) {
  const OthersLayer layer{.width = 1024, .hidden = 4096, .head_dim = 64, .largest_offset = 1000};
  const std::int64_t tied_ends = 32'001 * 1024 + 32'000;
  EXPECT_EQ(weights_of("pg19-transformer-xl"), 36 * layer.weights() + tied_ends);
  EXPECT_EQ(weights_of("pg19-compressive-transformer") - weights_of("pg19-transformer-xl"), 36 * 2 * 1024 * 1024);
}

// Child et al. 2019, Table 1: 95 M and 152 M.
TEST(PresetWeights, SparseTransformersHaveThoseOfChildEtAl) {
  const OthersLayer layer{.width = 512, .hidden = 2048, .head_dim = 64};
  const std::int64_t positions = (96 + 128) * 512;
  const std::int64_t text = 30 * layer.weights() + 2 * 512 + 256 * 512 + positions + 256 * 512 + 256;
  EXPECT_EQ(weights_of("enwik8-sparse-transformer"), text);
  EXPECT_NEAR(millions(text), 95, 0.5);
  const std::int64_t images = 48 * layer.weights() + 2 * 512 + image_ends(64, 512);
  EXPECT_EQ(weights_of("imagenet64-sparse-transformer"), images);
  EXPECT_NEAR(millions(images), 152, 0.5);
}

// Sukhbaatar et al. 2019, Table 2: 209 M with one table of 8,192 positions for all layers; ours are two per layer.
TEST(PresetWeights, AdaptiveTransformerOfEnwik8HasThoseOfSukhbaatarEtAlButForPositions) {
  const OthersLayer layer{.width = 768, .hidden = 4096, .head_dim = 96, .largest_offset = 1024};
  const std::int64_t ends = 2 * 256 * 768 + 256;
  const std::int64_t spans = 24 * 8;
  EXPECT_EQ(weights_of("enwik8-adaptive-transformer"), 24 * layer.weights() + spans + ends);
  OthersLayer without = layer;
  without.largest_offset = 0;
  EXPECT_NEAR(millions(24 * without.weights() + spans + ends + 96 * 8192), 209, 0.5);
}

// 20,000 + 20,000 + 160,000 + 67,735 words; each band's vectors four times narrower and mapped back, a symbol and its
// bias for each further band, a bias for each word, a start symbol.
std::int64_t banded_ends(std::int64_t width) {
  const std::int64_t second = width / 4;
  const std::int64_t third = width / 16;
  const std::int64_t fourth = width / 64;
  const std::int64_t tables =
      20'000 * width + (20'000 + width) * second + (160'000 + width) * third + (67'735 + width) * fourth;
  return tables + 3 * width + 3 + 267'735 + width;
}

// Dai et al. 2019, Table 1: 257 M, though their script makes 283 M; Sukhbaatar et al. 2019b: 133 M.
TEST(PresetWeights, ModelsOfWordsHaveThoseOfTheirPapersButForPositions) {
  const OthersLayer xl{.width = 1024, .hidden = 4096, .head_dim = 64, .largest_offset = 1000};
  EXPECT_EQ(weights_of("wikitext103-transformer-xl"), 18 * xl.weights() + banded_ends(1024));
  EXPECT_NEAR(millions(18 * (xl.weights() - 2 * 2001 * 64 + 1024 * 1024) + banded_ends(1024)), 283, 0.5)
      << "by their script; printed are 257 M";
  const OthersLayer adaptive{.width = 512, .hidden = 2048, .head_dim = 64, .largest_offset = 1024};
  EXPECT_EQ(weights_of("wikitext103-adaptive-transformer"), 36 * (adaptive.weights() + 8) + banded_ends(512));
  OthersLayer without = adaptive;
  without.largest_offset = 0;
  EXPECT_NEAR(millions(36 * without.weights() + banded_ends(512) + 64 * 2048), 133, 2);
}

TEST(PresetWeights, ReformersShareQueriesAndKeys) {
  const OthersLayer layer{.width = 1024, .hidden = 4096, .head_dim = 128, .projections = 3};
  EXPECT_EQ(weights_of("imagenet64-reformer"), 3 * layer.weights() + 2 * 1024 + image_ends(64, 1024));
  const std::int64_t positions = (128 + 512) * 1024;
  EXPECT_EQ(weights_of("enwik8-reformer"), 12 * layer.weights() + 2 * 1024 + 2 * 256 * 1024 + 256 + positions);
}

// Windows have no weights.
TEST(PresetWeights, WindowsInTwoDimensionsHaveThoseOfWindowsInRasterOrder) {
  EXPECT_EQ(weights_of("imagenet64-image-transformer"), weights_of("imagenet64-local"));
  EXPECT_EQ(weights_of("tiny-cifar10-local2d"), weights_of("tiny-cifar10-local"));
}

TEST(PresetWeights, ThePaperHasNoMapOfHeadsAndNoKeysThatNothingReads) {
  const std::int64_t tables = 2 * (2 * 513 + 1) * 64 + 2 * (2 * 256 + 1) * 64;  // of local heads; inside clusters
  const std::int64_t keys = 1024 * 512;                                         // of the local half of the heads
  const std::int64_t layer = 3 * 1024 * 1024 + keys + tables + 2 * 1024 * 3072 + 3072 + 1024 + 4 * 1024;
  const std::int64_t expected = text_ends(267'735, 1024, 256) + 10 * layer;
  EXPECT_EQ(weights_of("wikitext103-paper"), expected);
  // A start symbol of its own, and the scales of 8 routed heads in 10 layers.
  EXPECT_EQ(weights_of("wikitext103-causal"), expected + 256 + 80);
}

// Baevski & Auli print 247 M; theirs have no biases of words, no row to start from and no norm at the end.
TEST(PresetWeights, AdaptiveInputHasThoseOfItsPaper) {
  const std::int64_t tables = 20'000 * 1024 + 40'000 * 256 + 207'735 * 64;
  const std::int64_t projections = 1024 * (1024 + 256 + 64);
  const std::int64_t symbols = 2 * 1024;
  const std::int64_t layer = 4 * 1024 * 1024 + 2 * 1024 * 4096 + 4096 + 1024 + 2 * 2 * 1024;
  const std::int64_t theirs = tables + projections + symbols + 16 * layer;
  EXPECT_EQ(theirs / 100'000, 2468);
  EXPECT_EQ(weights_of("wikitext103-adaptive-input"), theirs + 267'735 + 2 + 1024 + 2 * 1024);
}

// The tables of clusters alone, against the same preset without: [2 window + 1, head_dim] for keys and for values, one
// pair for each layer that routes.
TEST(PresetWeights, RelativePositionsInsideClustersAreTwoTablesPerRoutedLayer) {
  const auto of_tables = [](const std::string& name) {
    return weights_of(name) - weights_of(name, {"routing.relative=none"});
  };
  for (const std::string twin : {"-paper", "-causal"}) {
    EXPECT_EQ(of_tables("wikitext103" + twin), 10 * 2 * (2 * 256 + 1) * 64) << twin;
    EXPECT_EQ(of_tables("enwik8" + twin), 12 * 2 * (2 * 256 + 1) * 128) << twin;
    EXPECT_EQ(of_tables("pg19" + twin), 2 * 2 * (2 * 512 + 1) * 129) << twin;
    EXPECT_EQ(of_tables("cifar10" + twin), 0) << twin;
    EXPECT_EQ(of_tables("imagenet64" + twin), 0) << twin;
  }
}

TEST(CountParameters, PartsOfAHandWorkedModel) {
  ExperimentConfig config;
  config.model = {.vocab_size = 10, .layers = 2, .width = 8, .embedding_width = 4, .feedforward_width = 12};
  config.attention = {.heads = 2, .content_heads = 1, .content = PatternKind::full};
  config.patterns.local.relative = RelativePosition::none;
  config.patterns.full.relative = RelativePosition::none;
  const ParameterCount count = count_parameters(config);
  EXPECT_EQ(count.embedding, 10 * 4 + 4 * 8 + 8);
  EXPECT_EQ(count.attention, 2 * 4 * 8 * 8);
  EXPECT_EQ(count.feedforward, 2 * (2 * 8 * 12 + 12 + 8));
  EXPECT_EQ(count.norms, (2 * 2 + 1) * 16);
  EXPECT_EQ(count.output, 8 * 4 + 4 + 10 * 4 + 10);
  EXPECT_EQ(count.total(), count.embedding + count.stack() + count.output);
  EXPECT_EQ(count.stack(), count.attention + count.feedforward + count.norms);
  EXPECT_EQ(count.a_word, 4 + 4 + 1);
}

TEST(CountParameters, AVocabularyOfTheDataCountsNothingButItsPrice) {
  const ParameterCount tied = count_parameters(preset_of("tiny-wikitext103"));
  EXPECT_EQ(tied.a_word, 128 + 1) << "one table and the bias";
  const ParameterCount known = count_parameters(preset_of("tiny-wikitext103", {"model.vocab_size=1000"}));
  EXPECT_EQ(known.total(), tied.total() + 1000 * tied.a_word);
}

TEST(CountParameters, OfBandsByHand) {
  // Bands of 3 words of 8 numbers, 6 of 4 and 11 of 2; a tied output layer has its biases, one per word and symbol, and
  // the symbols of two bands are rows of the first table.
  ExperimentConfig config;
  config.model = {.vocab_size = 20, .layers = 1, .width = 8, .tied_output = true, .bands = "3,9", .band_factor = 2.0};
  config.model.adaptive_input = config.model.adaptive_output = true;
  const std::int64_t tables = 3 * 8 + 6 * 4 + 11 * 2 + 8 * 4 + 8 * 2;
  EXPECT_EQ(count_parameters(config).embedding, tables + 2 * 8);
  EXPECT_EQ(count_parameters(config).output, 20 + 2);
  EXPECT_EQ(count_parameters(config).a_word, 2 + 1);
  config.model.tied_output = false;
  EXPECT_EQ(count_parameters(config).output, tables + 20 + 2 + 2 * 8);
  config.model.embedding_projection = true;
  EXPECT_EQ(count_parameters(config).embedding, tables + 8 * 8) << "of the first band, the others have theirs";
  const std::int64_t known = count_parameters(config).total();
  config.model.vocab_size = 0;
  const ParameterCount unknown = count_parameters(config);
  EXPECT_EQ(known, unknown.total() + 20 * unknown.a_word);
}

TEST(CountParameters, OfRecallDoNotDependOnTheOrderOfAFact) {
  EXPECT_EQ(weights_of("tiny-recall", {"data.key_first=true"}), weights_of("tiny-recall"));
}

TEST(CountParameters, AStartSymbolOfItsOwnIsOneMoreRow) {
  EXPECT_EQ(weights_of("wikitext103-paper", {"model.start_symbol=own"}), weights_of("wikitext103-paper") + 256);
  EXPECT_EQ(weights_of("pg19-causal"), weights_of("pg19-causal", {"model.start_symbol=zero"}) + 1032);
}

// By the names of its parameters, while the vocabulary of the data is unknown with 10,000 words.
ParameterCount parts_of_model(ExperimentConfig config) {
  if (config.data.format == DataFormat::recall) config.data = {};  // would refuse so few words
  const auto model = make_model(config, at::TensorOptions().device(at::kMeta));
  ParameterCount count;
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    const auto holds = [&](const char* part) { return name.find(part) != std::string::npos; };
    const bool in_a_layer = name.starts_with("layer") || name.starts_with("encoder") || name.starts_with("decoder");
    std::int64_t& part = holds("norm")                        ? count.norms
                         : in_a_layer && holds("feedforward") ? count.feedforward
                         : in_a_layer                         ? count.attention
                         : name.starts_with("output")         ? count.output
                                                              : count.embedding;
    part += item.value().numel();
  }
  return count;
}

TEST(CountParameters, ModelsHaveAsManyInEveryPart) {
  const std::vector<std::vector<std::string>> variants{
      {},
      {"model.tied_output=true"},
      {"model.embedding_width=64"},
      {"model.embedding_projection=true"},
      {"model.norm=post"},
      {"model.feedforward=geglu"},
      {"model.start_symbol=own"},
      {"model.bands=3,9", "model.band_factor=1.5", "model.adaptive_input=true", "model.adaptive_output=true"},
      {"model.bands=3,9", "model.band_factor=1.5", "model.adaptive_input=true", "model.adaptive_output=true",
       "model.tied_output=true", "model.embedding_projection=true", "model.start_symbol=own"},
      {"model.bands=9", "model.adaptive_input=true", "model.adaptive_output=false", "model.tied_output=false"},
      {"model.bands=9", "model.adaptive_input=false", "model.adaptive_output=true", "model.tied_output=false"},
      {"routing.shared_query_key=false"},
      {"attention.add_content=true"},
      {"local.learned_scale=true", "routing.learned_scale=true"},
      {"model.positions=learned"}};
  int compared = 0;
  for (const std::string& name : preset_names()) {
    for (const std::vector<std::string>& settings : variants) {
      ExperimentConfig config;
      try {
        config = preset_of(name, settings);
      } catch (const ConfigError&) {
        continue;  // not every preset can have every option
      }
      const std::string which = name + (settings.empty() ? "" : ", " + settings.front());
      if (config.model.vocab_size == 0) config.model.vocab_size = 10'000;
      const ParameterCount count = count_parameters(config);
      const ParameterCount made = parts_of_model(config);
      EXPECT_EQ(count.embedding, made.embedding) << which;
      EXPECT_EQ(count.attention, made.attention) << which;
      EXPECT_EQ(count.feedforward, made.feedforward) << which;
      EXPECT_EQ(count.norms, made.norms) << which;
      EXPECT_EQ(count.output, made.output) << which;
      ++config.model.vocab_size;
      EXPECT_EQ(count.a_word, parts_of_model(config).total() - made.total()) << which;
      ++compared;
    }
  }
  EXPECT_GT(compared, 150);
}

TEST(PresetWeights, EveryPresetCanBeBuilt) {
  for (const std::string& name : preset_names()) EXPECT_GT(weights_of(name), 250'000) << name;
}

}  // namespace
}  // namespace routing::presets_test
