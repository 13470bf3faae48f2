#include "routing/interchange/authors_checkpoint.h"

#include "interchange/authors_oracle.h"
#include "routing/config/resolve.h"
#include "routing/core/error.h"
#include "routing/interchange/authors_variables.h"
#include "routing/interchange/foreign_values.h"
#include "routing/model/weights.h"
#include "support/small_experiment.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace routing::authors_checkpoint_test {
namespace {

using Variables = std::map<std::string, at::Tensor>;

// A twin of the published models, small enough for plain loops.
ExperimentConfig tiny(std::vector<std::string> more = {}) {
  std::vector<std::string> settings{"model.vocab_size=11",
                                    "model.layers=3",
                                    "model.width=12",
                                    "attention.heads=3",
                                    "attention.content_heads=2",
                                    "model.feedforward_width=10",
                                    "attention.content_layers=top 2",
                                    "local.window=4",
                                    "local.max_relative=9",
                                    "routing.clusters=3",
                                    "routing.window=5",
                                    "routing.max_relative=9",
                                    "train.sequence_length=16"};
  settings.insert(settings.end(), more.begin(), more.end());
  return resolve({.preset = "enwik8-code", .settings = settings});
}

Variables random_variables(const ExperimentConfig& config, std::uint64_t seed) {
  Variables variables;
  at::manual_seed(seed);
  for (const AuthorsVariable& variable : authors_variables(config)) {
    at::Tensor values = at::randn(variable.dimensions, at::kFloat) * 0.4;
    if (variable.name.ends_with("_scale")) values += 1.0;
    if (variable.name.ends_with("ema_count")) values = values.abs();
    variables[kAuthorsScope + variable.name] = values;
  }
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    const AttentionConfig attention = attention_of_layer(config, layer);
    if (attention.head_mix) continue;
    variables[kAuthorsScope + authors_head_mix(layer)] =
        at::randn({head_dim(attention), head_dim(attention)}, at::kFloat);
  }
  variables["global_step"] = at::scalar_tensor(3'530'000, at::kLong);
  return variables;
}

void write(const std::filesystem::path& prefix, const Variables& variables) {
  std::vector<BundleTensor> tensors;
  for (const auto& [name, tensor] : variables) tensors.push_back(bundle_tensor(name, tensor));
  write_tensor_bundle(prefix, tensors);
}

void expect_the_authors_logits(const ExperimentConfig& config) {
  const TemporaryFolder folder;
  const Variables variables = random_variables(config, 7);
  write(folder / "m", variables);
  const AuthorsModel read = read_authors_checkpoint(folder / "m", config);
  const auto& local = std::get<LocalPattern>(config.patterns.local.pattern);
  const AuthorsOracle oracle(variables, {.layers = config.model.layers,
                                         .heads = config.attention.heads,
                                         .dim = config.model.width / config.attention.heads,
                                         .block = local.window,
                                         .window = config.routing.routing().window});
  const at::Tensor tokens = random_tokens(1, 16, config.model.vocab_size, 3);
  const at::NoGradGuard no_gradient;
  const at::Tensor ours = Transformer(read.model)->logits(tokens, {})[0];
  const at::Tensor theirs = oracle.logits(tokens[0]);
  EXPECT_LT((ours - theirs).abs().max().item<double>(), 1e-4);
  EXPECT_GT(theirs.std().item<double>(), 0.1);
}

TEST(AuthorsCheckpoint, ModelsHaveTheLogitsOfThePlainOracle) {
  expect_the_authors_logits(tiny());
}

TEST(AuthorsCheckpoint, GegluAndNarrowEmbeddingsHaveThemToo) {
  expect_the_authors_logits(
      tiny({"model.feedforward=geglu", "model.embedding_width=8", "attention.content_layers=all"}));
}

TEST(AuthorsCheckpoint, OnlyRoutedHeadsHaveThemToo) {
  expect_the_authors_logits(tiny({"attention.content_heads=3", "attention.content_layers=all"}));
}

TEST(AuthorsCheckpoint, HeadMixesOfLocalModelsAreFoldedIntoTheNextLayer) {
  const ExperimentConfig config = tiny({"attention.content=local"});
  expect_the_authors_logits(config);
  const TemporaryFolder folder;
  write(folder / "m", random_variables(config, 7));
  EXPECT_EQ(read_authors_checkpoint(folder / "m", config).folded.size(), 3U);
}

TEST(AuthorsCheckpoint, WithoutRelativePositionsThereAreNoTables) {
  expect_the_authors_logits(tiny({"local.relative=none", "routing.relative=none"}));
}

TEST(AuthorsCheckpoint, OursToTheirsAndBackIsTheSameBitForBit) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{},
                                               {"model.feedforward=geglu", "model.embedding_width=8"},
                                               {"attention.content=local"}}) {
    const TemporaryFolder folder;
    const ExperimentConfig config = tiny(more);
    Transformer model(config, at::TensorOptions(at::kFloat));
    at::manual_seed(5);
    for (const auto& [name, tensor] : named_tensors(*model)) {
      if (tensor.is_floating_point()) at::Tensor(tensor).normal_();
      if (!tensor.is_floating_point()) at::Tensor(tensor).random_(1, 100);
    }
    write_authors_checkpoint(folder / "m", *model);
    const AuthorsModel read = read_authors_checkpoint(folder / "m", config);
    const auto expected = named_tensors(*model);
    const auto found = named_tensors(*read.model);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, tensor] : expected) EXPECT_TRUE(at::equal(found.at(name), tensor)) << name;
    EXPECT_TRUE(read.folded.empty());
    EXPECT_EQ(read.skipped, std::vector<std::string>{"global_step"});
  }
}

TEST(AuthorsCheckpoint, StateOfTheOptimiserIsSkippedAndListed) {
  const TemporaryFolder folder;
  Variables variables = random_variables(tiny(), 7);
  variables["losses_avg/problem_0/extra_loss"] = at::zeros({}, at::kFloat);
  variables["training/sparse_transformer/body/emb_dense/kernel/Adafactor"] = at::zeros({12}, at::kFloat);
  variables["sparse_transformer/body/emb_dense/kernel/Adafactor_1"] = at::zeros({12}, at::kFloat);
  write(folder / "m", variables);
  const AuthorsModel read = read_authors_checkpoint(folder / "m", tiny());
  EXPECT_EQ(read.skipped.size(), 4U);
  EXPECT_EQ(read.step, 3'530'000);
  EXPECT_EQ(named_tensors(*read.model).at("layer2.attention.group1.centroids.updates").item<std::int64_t>(), 3'530'000);
}

TEST(AuthorsCheckpoint, EverythingThatDoesNotFitIsNamedAtOnce) {
  const TemporaryFolder folder;
  const std::string scope = kAuthorsScope;
  Variables variables = random_variables(tiny(), 7);
  variables.erase(scope + "emb_dense/bias");
  variables.erase(scope + "decoder_layer_1/self_attention/ffn/conv1/kernel");
  variables[scope + "final_dense_2/bias"] = at::zeros({13}, at::kFloat);
  variables[scope + "embeddings/embedding"] = variables[scope + "embeddings/embedding"].to(at::kDouble);
  variables[scope + "decoder_layer_0/token_bias_weight"] = at::zeros({}, at::kFloat);
  write(folder / "m", variables);
  const std::string message = message_of<FileError>([&] { read_authors_checkpoint(folder / "m", tiny()); });
  for (const char* part : {"missing: 'sparse_transformer/body/emb_dense/bias' [12]", "ffn/conv1/kernel' [12, 10]",
                           "final_dense_2/bias' is float32 [13] but must be float32 [11]",
                           "embeddings/embedding' is float64 [11, 12] but must be float32 [11, 12]",
                           "not part of the model: 'sparse_transformer/body/decoder_layer_0/token_bias_weight' []"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  }
  // A deeper model is not cut to a shallower one.
  write(folder / "m", random_variables(tiny(), 7));
  EXPECT_NE(message_of<FileError>([&] {
              read_authors_checkpoint(folder / "m", tiny({"model.layers=2"}));
            }).find("not part of the model: 'sparse_transformer/body/decoder_layer_2"),
            std::string::npos);
}

}  // namespace
}  // namespace routing::authors_checkpoint_test
