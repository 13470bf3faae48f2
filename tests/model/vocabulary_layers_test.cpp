#include "routing/model/vocabulary_layers.h"

#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"
#include "routing/model/weights.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace routing::vocabulary_layers_test {
namespace {

const at::TensorOptions kFloats = at::TensorOptions().dtype(at::kFloat);

std::map<std::string, at::Tensor> gradients_of(SequenceModel& model, const at::Tensor& tokens) {
  model.loss(tokens, {}).nats.mean().backward();
  std::map<std::string, at::Tensor> gradients;
  for (const auto& item : model.named_parameters()) gradients[item.key()] = item.value().grad();
  return gradients;
}

TEST(EmbeddingWidth, IsTheModelsUnlessItHasItsOwn) {
  EXPECT_EQ(embedding_width({.width = 24}), 24);
  EXPECT_EQ(embedding_width({.width = 24, .embedding_width = 8}), 8);
}

TEST(StartSymbol, ChangesNoOtherRowOfTheTableAtItsStart) {
  const auto table_of = [](StartSymbol start) {
    ExperimentConfig config = small_experiment("local");
    config.model.start_symbol = start;
    config.model.tied_output = true;
    return Transformer(config, kFloats)->named_parameters()["embedding"].detach();
  };
  const at::Tensor without = table_of(StartSymbol::zero);
  const at::Tensor with = table_of(StartSymbol::own);
  ASSERT_EQ(with.sizes(), at::IntArrayRef({257, 16}));
  EXPECT_TRUE(at::equal(with.narrow(0, 0, 256), without));
  EXPECT_GT(with[256].abs().max().item<double>(), 0.0);
}

TEST(VocabularyBandsOfAModel, AreReadAndPredictedWhereTheKeysSay) {
  ModelConfig model{.vocab_size = 100, .width = 32, .bands = "10,40"};
  EXPECT_FALSE(reads_bands(model));
  EXPECT_FALSE(predicts_bands(model));
  model.adaptive_input = true;
  EXPECT_TRUE(reads_bands(model));
  EXPECT_FALSE(predicts_bands(model));
  model.adaptive_output = true;
  EXPECT_TRUE(predicts_bands(model));
  EXPECT_EQ(bands_of(model), (std::vector<VocabularyBand>{{0, 10, 32}, {10, 30, 8}, {40, 60, 2}}));
  EXPECT_FALSE(projects_embeddings(model));
  model.embedding_projection = true;
  EXPECT_FALSE(projects_embeddings(model)) << "bands have their own";
  model.embedding_width = 16;
  EXPECT_TRUE(projects_embeddings(model));
  EXPECT_EQ(bands_of(model).front().width, 16);
  model.bands = "";
  EXPECT_FALSE(reads_bands(model));
  EXPECT_EQ(bands_of(model), (std::vector<VocabularyBand>{{0, 100, 16}}));
}

TEST(BandedModel, OfOneBandIsThePlainModelBitForBit) {
  for (const bool tied : {false, true}) {
    ExperimentConfig plain = small_experiment("local");
    plain.model.tied_output = tied;
    ExperimentConfig banded = plain;
    banded.model.adaptive_input = banded.model.adaptive_output = true;
    Transformer one(plain, kFloats);
    Transformer other(banded, kFloats);
    const at::Tensor tokens = random_tokens(2, 32, 256, 1);
    EXPECT_TRUE(at::equal(one->logits(tokens, {}), other->logits(tokens, {})));
    EXPECT_TRUE(at::equal(one->loss(tokens, {}).nats, other->loss(tokens, {}).nats));
    const auto expected = gradients_of(*one, tokens);
    const auto gradients = gradients_of(*other, tokens);
    ASSERT_EQ(gradients.size(), expected.size());
    for (const auto& [name, value] : expected) EXPECT_TRUE(at::equal(gradients.at(name), value)) << name;
  }
}

TEST(BandedModel, LogitsAreTheLogarithmsOfProbabilitiesAndTheirLossTheNats) {
  for (const bool tied : {false, true}) {
    ExperimentConfig config = in_bands(small_experiment());
    config.model.tied_output = tied;
    config.model.initial_scale = 4.0;
    Transformer model(config, kFloats);
    model->eval();
    const at::NoGradGuard no_gradient;
    const at::Tensor tokens = random_tokens(2, 32, 256, 1);
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const at::Tensor logits = model->logits(tokens, {.precision = precision});
      ASSERT_EQ(logits.sizes(), at::IntArrayRef({2, 32, 256}));
      EXPECT_TRUE(at::allclose(logits.to(at::kDouble).exp().sum(2), at::ones({2, 32}, at::kDouble), 0.0, 1e-5));
      const at::Tensor nats = model->loss(tokens, {.precision = precision}).nats;
      EXPECT_TRUE(at::allclose(-logits.gather(2, tokens.unsqueeze(2)).squeeze(2), nats, 0.0, 1e-5));
      EXPECT_GT(nats.std().item<double>(), 0.1) << "not all words alike";
    }
  }
}

// What is shared gets the sum of what both uses would get by themselves.
TEST(BandedModel, GradientsOfTiedBandsAreThoseOfBothUses) {
  ExperimentConfig config = in_bands(small_experiment("local"));
  Transformer tied(config, kFloats);
  config.model.tied_output = false;
  Transformer apart(config, kFloats);
  {
    const at::NoGradGuard no_gradient;
    auto from = tied->named_parameters();
    for (auto& item : apart->named_parameters()) {
      const std::string& name = item.key();
      const bool of_output = name.starts_with("output_") && name != "output_bias";
      if (name == "embedding") {
        item.value().copy_(at::cat({from["embedding"].narrow(0, 0, 32), from["embedding"].narrow(0, 34, 1)}));
      } else if (name == "output_weight") {
        item.value().copy_(from["embedding"].narrow(0, 0, 34));
      } else if (!of_output) {
        item.value().copy_(from[name]);
      } else if (name.starts_with("output_band")) {
        item.value().copy_(from["embedding_band" + name.substr(11)]);
      } else {
        item.value().copy_(from["embedding_projection" + name.substr(17)].t());
      }
    }
  }
  const at::Tensor tokens = random_tokens(3, 32, 256, 4);
  EXPECT_TRUE(at::equal(tied->loss(tokens, {}).nats, apart->loss(tokens, {}).nats));
  const auto together = gradients_of(*tied, tokens);
  const auto both = gradients_of(*apart, tokens);
  const auto expect_sum = [&](const at::Tensor& sum, const at::Tensor& one, const at::Tensor& other) {
    EXPECT_TRUE(at::allclose(sum, one + other, 1e-5, 1e-8));
    EXPECT_GT(one.abs().max().item<double>(), 0.0);
    EXPECT_GT(other.abs().max().item<double>(), 0.0);
  };
  expect_sum(together.at("embedding").narrow(0, 0, 32), both.at("embedding").narrow(0, 0, 32),
             both.at("output_weight").narrow(0, 0, 32));
  EXPECT_TRUE(at::allclose(together.at("embedding").narrow(0, 32, 2), both.at("output_weight").narrow(0, 32, 2)));
  EXPECT_TRUE(at::allclose(together.at("embedding")[34], both.at("embedding")[32]));
  for (const std::string band : {"1", "2"}) {
    expect_sum(together.at("embedding_band" + band), both.at("embedding_band" + band), both.at("output_band" + band));
    expect_sum(together.at("embedding_projection" + band), both.at("embedding_projection" + band),
               both.at("output_projection" + band).t());
  }
  EXPECT_TRUE(at::allclose(together.at("output_bias"), both.at("output_bias")));
}

TEST(BandedModel, ReadPieceByPieceHasTheBitsOfTheWholePass) {
  for (const bool own_width : {false, true}) {
    ExperimentConfig config = in_bands(odd_experiment("routing", 130));
    if (own_width) config.model.embedding_width = 20;
    config.model.embedding_projection = !own_width;
    Transformer model(config, kFloats);
    model->eval();
    const at::NoGradGuard no_gradient;
    const at::Tensor tokens = random_tokens(1, 130, 37, 21);
    const at::Tensor previous = tokens.roll(1, 1);
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const at::Tensor logits = model->logits(tokens, {.precision = precision});
      const at::Tensor nats = model->loss(tokens, {.precision = precision}).nats;
      ModelCache cache = model->make_cache();
      ModelCache other = model->make_cache();
      const std::vector<std::int64_t> sequence{cache.add_sequence()};
      const std::vector<std::int64_t> same{other.add_sequence()};
      for (std::int64_t first = 0; first < 130;) {
        const std::int64_t count = first == 0 ? 67 : 1;
        const at::Tensor piece = previous.narrow(1, first, count);
        EXPECT_TRUE(at::equal(model->logits_cached(piece, cache, sequence, {.precision = precision}),
                              logits.narrow(1, first, count)))
            << first;
        const at::Tensor targets = tokens.narrow(1, first, count);
        EXPECT_TRUE(at::equal(model->nats_cached(piece, targets, other, same, {.precision = precision}),
                              nats.narrow(1, first, count)))
            << first;
        first += count;
      }
      for (const std::int64_t position : {0, 40, 129}) {
        const auto target = tokens[0][position].item<std::int64_t>();
        EXPECT_EQ(model->nats_at(tokens, position, target, {.precision = precision}), nats[0][position].item<double>());
        const std::vector<std::int64_t> before(tokens.data_ptr<std::int64_t>(),
                                               tokens.data_ptr<std::int64_t>() + position);
        EXPECT_TRUE(at::equal(model->next_logits(before, {.precision = precision}),
                              model->logits(tokens.narrow(1, 0, position + 1), {.precision = precision})[0][position]));
      }
    }
  }
}

TEST(BandedModel, OfAnEncoderDecoderHasBandsInBothTablesAndTheOutput) {
  ExperimentConfig config = in_bands(small_pairs_experiment("full"));
  EncoderDecoder model(config, kFloats);
  const auto tensors = named_tensors(*model);
  EXPECT_EQ(tensors.at("source.embedding").size(0), 5 + 1) << "no symbols where nothing is predicted";
  EXPECT_EQ(tensors.at("target.embedding").size(0), 5 + 2 + 1);
  EXPECT_EQ(tensors.at("source.embedding_band2").sizes(), at::IntArrayRef({20, 4}));
  EXPECT_EQ(tensors.count("output_weight"), 0U);
  const TokenBatch batch{.tokens = random_tokens(2, 32, 40, 1), .source = random_tokens(2, 24, 40, 2)};
  model->loss(batch, {}).nats.mean().backward();
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0.0) << item.key();
  }
  model->eval();
  const at::NoGradGuard no_gradient;
  const at::Tensor source = batch.source.narrow(0, 0, 1);
  const at::Tensor target = batch.tokens.narrow(0, 0, 1);
  const at::Tensor expected = model->logits({.tokens = target, .source = source}, {});
  EXPECT_TRUE(at::allclose(expected.exp().sum(2), at::ones({1, 32}), 0.0, 1e-5));
  ModelCache cache = model->make_cache();
  const std::vector<std::int64_t> sequence{model->begin_sequence(cache, source, {})};
  const at::Tensor previous = target.roll(1, 1);
  for (std::int64_t i = 0; i < 32; ++i) {
    EXPECT_TRUE(
        at::equal(model->logits_cached(previous.narrow(1, i, 1), cache, sequence, {}), expected.narrow(1, i, 1)))
        << i;
  }
}

TEST(BandedModel, EveryTableAndProjectionHasAGradientHoweverTheTokensFall) {
  Transformer model(in_bands(small_experiment("local")), kFloats);
  const auto gradients = gradients_of(*model, at::full({2, 16}, 3, at::kLong));  // all in the first band
  for (const auto& [name, value] : gradients) ASSERT_TRUE(value.defined()) << name;
  EXPECT_TRUE(at::equal(gradients.at("embedding_band1"), at::zeros({96, 8})));
  EXPECT_TRUE(at::equal(gradients.at("embedding_projection2"), at::zeros({16, 4})));
  EXPECT_GT(gradients.at("embedding").narrow(0, 32, 2).abs().max().item<double>(), 0.0) << "symbols not chosen";
}

}  // namespace
}  // namespace routing::vocabulary_layers_test
