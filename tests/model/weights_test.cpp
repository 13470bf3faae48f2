// A model on disk and back.
#include "routing/model/weights.h"

#include "routing/core/error.h"
#include "routing/storage/safetensors.h"
#include "support/small_experiment.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace routing::weights_test {
namespace {

class WeightsOnDisk : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "model.safetensors"; }

  TemporaryFolder folder_;
};

TEST_F(WeightsOnDisk, EveryContentComesBackWithTheSameLogits) {
  for (const ContentCase& item : content_cases()) {
    Transformer model(item.config, at::TensorOptions().dtype(at::kFloat));
    // One training forward, so that centroids and thresholds are no longer what the seed says.
    model->train();
    model->loss(random_tokens(2, 32, 256, 1), {});
    model->update_centroids();
    model->eval();
    save_model(file(), *model, {.version = "1.2.3", .tokenizer_hash = "0123456789abcdef"});
    Transformer loaded = load_model(file());
    EXPECT_EQ(loaded->config(), item.config);
    EXPECT_FALSE(loaded->is_training());
    const at::Tensor tokens = random_tokens(2, 32, 256, 2);
    EXPECT_TRUE(at::equal(model->logits(tokens, {}), loaded->logits(tokens, {}))) << item.name;
    const auto metadata = read_safetensors_metadata(file());
    EXPECT_EQ(metadata.at("version"), "1.2.3");
    EXPECT_EQ(metadata.at("validity"), item.name == "balanced" ? "selection reads the future" : "causal");
  }
}

TEST_F(WeightsOnDisk, AnEncoderDecoderOfEveryContentComesBackWithTheSameLogits) {
  for (const ContentCase& item : pairs_cases()) {
    EncoderDecoder model(item.config, at::TensorOptions().dtype(at::kFloat));
    const TokenBatch batch{.tokens = random_tokens(2, 32, 40, 1), .source = random_tokens(2, 24, 40, 2)};
    model->train();
    model->loss(batch, {});
    model->update_centroids();
    model->eval();
    save_model(file(), *model, {.version = "1.2.3"});
    EncoderDecoder loaded = load_encoder_decoder(file());
    EXPECT_EQ(loaded->config(), item.config);
    EXPECT_FALSE(loaded->is_training());
    EXPECT_TRUE(at::equal(model->logits(batch, {}), loaded->logits(batch, {}))) << item.name;
    const auto metadata = read_safetensors_metadata(file());
    EXPECT_EQ(metadata.at("validity"), item.name == "balanced" ? "selection reads the future" : "causal");
    EXPECT_EQ(metadata.count("tied"), 0U);
  }
}

TEST_F(WeightsOnDisk, SayWhatTheyWereTrainedOn) {
  Transformer model(small_experiment(), at::TensorOptions().dtype(at::kFloat));
  save_model(file(), *model, {.version = "1.2.3", .tokenizer_hash = "0123456789abcdef", .data_label = "partial data"});
  const ModelNotes notes = load_model_notes(file());
  EXPECT_EQ(notes.version, "1.2.3");
  EXPECT_EQ(notes.tokenizer_hash, "0123456789abcdef");
  EXPECT_EQ(notes.data_label, "partial data");
  save_model(file(), *model, {});
  EXPECT_EQ(read_safetensors_metadata(file()).count("data_label"), 0U) << "a whole set needs no label";
  EXPECT_EQ(load_model_notes(file()).data_label, "");
}

TEST_F(WeightsOnDisk, AModelOfTheOtherKindIsRefused) {
  save_model(file(), *make_model(small_pairs_experiment(), at::TensorOptions().dtype(at::kFloat)), {.version = "1"});
  EXPECT_NE(message_of<FileError>([&] { load_model(file()); }).find("holds an encoder-decoder"), std::string::npos);
  EXPECT_EQ(load_sequence_model(file())->config(), small_pairs_experiment());
  save_model(file(), *make_model(small_experiment(), at::TensorOptions().dtype(at::kFloat)), {.version = "1"});
  EXPECT_NE(message_of<FileError>([&] { load_encoder_decoder(file()); }).find("holds a decoder-only model"),
            std::string::npos);
  EXPECT_EQ(load_sequence_model(file())->config(), small_experiment());
}

TEST_F(WeightsOnDisk, TheTiedOutputOfAnEncoderDecoderIsTheTableOfTheTarget) {
  ExperimentConfig config = small_pairs_experiment();
  config.model.tied_output = true;
  save_model(file(), *make_model(config, at::TensorOptions().dtype(at::kFloat)), {.version = "1"});
  const TensorFile stored = read_safetensors(file());
  EXPECT_EQ(stored.tensors.count("output_weight"), 0U);
  EXPECT_EQ(stored.tensors.count("target.embedding"), 1U);
  EXPECT_EQ(stored.metadata.at("tied"), "output_weight=target.embedding");
}

TEST_F(WeightsOnDisk, TiedOutputIsStoredOnce) {
  ExperimentConfig config = small_experiment();
  config.model.tied_output = true;
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  save_model(file(), *model, {.version = "1"});
  const TensorFile stored = read_safetensors(file());
  EXPECT_EQ(stored.tensors.count("output_weight"), 0U);
  EXPECT_EQ(stored.metadata.at("tied"), "output_weight=embedding");
  model->eval();
  const at::Tensor tokens = random_tokens(1, 8, 256, 2);
  EXPECT_TRUE(at::equal(model->logits(tokens, {}), load_model(file())->logits(tokens, {})));
}

TEST_F(WeightsOnDisk, TiedBandsAreStoredOnceAndComeBackWithTheSameLogits) {
  Transformer model(in_bands(small_experiment()), at::TensorOptions().dtype(at::kFloat));
  save_model(file(), *model, {.version = "1"});
  const TensorFile stored = read_safetensors(file());
  EXPECT_EQ(stored.tensors.at("embedding").sizes(), (std::vector<std::int64_t>{32 + 2 + 1, 16}));
  EXPECT_EQ(stored.tensors.at("embedding_band1").sizes(), (std::vector<std::int64_t>{96, 8}));
  EXPECT_EQ(stored.tensors.at("embedding_projection2").sizes(), (std::vector<std::int64_t>{16, 4}));
  EXPECT_EQ(stored.tensors.at("output_bias").sizes(), (std::vector<std::int64_t>{256 + 2}));
  EXPECT_EQ(stored.tensors.count("output_weight"), 0U);
  EXPECT_EQ(stored.metadata.at("tied"),
            "output_weight=embedding[0:34] output_band1=embedding_band1 output_projection1=embedding_projection1.t "
            "output_band2=embedding_band2 output_projection2=embedding_projection2.t");
  model->eval();
  const at::Tensor tokens = random_tokens(1, 8, 256, 2);
  EXPECT_TRUE(at::equal(model->logits(tokens, {}), load_model(file())->logits(tokens, {})));
}

TEST_F(WeightsOnDisk, AStartSymbolOfItsOwnComesBackAndIsNoOutput) {
  ExperimentConfig config = small_experiment();
  config.model.tied_output = true;
  config.model.start_symbol = StartSymbol::own;
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  save_model(file(), *model, {.version = "1"});
  const TensorFile stored = read_safetensors(file());
  EXPECT_EQ(stored.tensors.at("embedding").sizes(), (std::vector<std::int64_t>{257, 16}));
  EXPECT_EQ(stored.metadata.at("tied"), "output_weight=embedding[0:256]");
  model->eval();
  const at::Tensor tokens = random_tokens(1, 8, 256, 2);
  EXPECT_TRUE(at::equal(model->logits(tokens, {}), load_model(file())->logits(tokens, {})));
}

// Files that were written before there was the key.
TEST_F(WeightsOnDisk, AFileThatNamesNoStartSymbolBeginsWithZero) {
  Transformer model(small_experiment(), at::TensorOptions().dtype(at::kFloat));
  save_model(file(), *model, {.version = "1"});
  TensorFile stored = read_safetensors(file());
  std::string& config = stored.metadata.at("config");
  const std::string line = "start_symbol = \"zero\"\n";
  ASSERT_NE(config.find(line), std::string::npos);
  config.erase(config.find(line), line.size());
  write_safetensors(file(), stored);
  Transformer loaded = load_model(file());
  EXPECT_EQ(loaded->config().model.start_symbol, StartSymbol::zero);
  model->eval();
  const at::Tensor tokens = random_tokens(1, 8, 256, 2);
  EXPECT_TRUE(at::equal(model->logits(tokens, {}), loaded->logits(tokens, {})));
}

TEST_F(WeightsOnDisk, WhatDoesNotFitIsNamedAndTheModelStaysAsItWas) {
  Transformer model(small_experiment(), at::TensorOptions().dtype(at::kFloat));
  const at::Tensor before = model->named_parameters()["embedding"].detach().clone();
  auto tensors = named_tensors(*model);
  for (auto& [name, value] : tensors) value = value.clone() + 1;

  auto missing = tensors;
  missing.erase("layer1.feedforward.in_bias");
  EXPECT_NE(message_of<FileError>([&] {
              load_tensors(*model, missing, "here");
            }).find("here: tensor 'layer1.feedforward.in_bias'"),
            std::string::npos);
  auto extra = tensors;
  extra["layer9.bias"] = at::zeros({3});
  EXPECT_NE(message_of<FileError>([&] { load_tensors(*model, extra, "here"); }).find("'layer9.bias' [3] is not part"),
            std::string::npos);
  auto misshapen = tensors;
  misshapen["output_bias"] = at::zeros({3});
  EXPECT_NE(message_of<FileError>([&] {
              load_tensors(*model, misshapen, "here");
            }).find("[3], but the model has Float [256]"),
            std::string::npos);
  EXPECT_TRUE(at::equal(before, model->named_parameters()["embedding"]));
  load_tensors(*model, tensors, "here");
  EXPECT_TRUE(at::equal(before + 1, model->named_parameters()["embedding"]));
}

TEST_F(WeightsOnDisk, AFileWithoutConfigurationIsRefused) {
  write_safetensors(file(), {.tensors = {{"a", at::zeros({2})}}});
  EXPECT_NE(message_of<FileError>([&] { load_model(file()); }).find("holds no 'config'"), std::string::npos);
  write_safetensors(file(), {.tensors = {{"a", at::zeros({2})}}, .metadata = {{"config", "[train]\nspeed = 3\n"}}});
  EXPECT_NE(message_of<FileError>([&] { load_model_config(file()); }).find("speed"), std::string::npos);
}

}  // namespace
}  // namespace routing::weights_test
