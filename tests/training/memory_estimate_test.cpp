#include "routing/training/memory_estimate.h"

#include "lab/measure/memory.h"
#include "routing/config/resolve.h"
#include "routing/core/parallel.h"
#include "routing/ops/attend/attend.h"
#include "routing/ops/tensor_memory.h"
#include "routing/training/learner.h"
#include "support/small_experiment.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace routing::memory_estimate_test {
namespace {

// Two layers of width 128 over 4 sequences of 1024 bytes, in float32.
ExperimentConfig experiment(const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{"model.layers=2",      "model.width=128",           "model.feedforward_width=512",
                                    "attention.heads=4",   "attention.content_heads=2", "local.window=64",
                                    "local.relative=none", "routing.window=64",         "train.sequence_length=1024",
                                    "train.batch_size=4",  "train.precision=fp32",      "train.schedule=constant"};
  settings.insert(settings.end(), more.begin(), more.end());
  return resolve({.settings = settings});
}

// Peak of a training step above what was resident before the model was made; as src/lab/bench/train_bench.cpp measures.
std::optional<std::int64_t> measured(const ExperimentConfig& config) {
  const std::int64_t before = bench::resident_bytes();
  Learner learner(config);
  const TrainConfig& train = config.train;
  const auto step = [&] {
    const TokenBatch batch{.tokens = random_tokens(train.batch_size, train.sequence_length, 256, 1),
                           .sample_ids = at::arange(train.batch_size, at::kLong),
                           .index = 0};
    learner.step(std::vector<TokenBatch>{batch});
  };
  step();
  step();
  return bench::peak_bytes_above(before, step);
}

TEST(MemoryEstimate, WeightsGradientsAndMomentsAreExact) {
  const ExperimentConfig config = experiment({"attention.content=local"});
  const std::int64_t layer = 4 * 128 * 128 + 2 * 128 * 512 + 512 + 128 + 4 * 128;
  const std::int64_t weights = 2 * layer + 2 * 128 + 2 * 256 * 128 + 256;
  const MemoryEstimate adam = estimate_training_memory(config);
  EXPECT_EQ(adam.weights, 4 * weights);
  EXPECT_EQ(adam.gradients, 4 * weights);
  EXPECT_EQ(adam.output_gradients, 4 * 256 * 128);
  EXPECT_EQ(adam.optimizer, 8 * weights);
  EXPECT_EQ(adam.packed_weights, 2 * 4 * 2 * (4 * 128 * 128 + 2 * 128 * 512)) << "forward and backward";
  const MemoryEstimate factored =
      estimate_training_memory(experiment({"attention.content=local", "train.optimizer=adafactor"}));
  const std::int64_t of_layer = 4 * (128 + 128) + 2 * (128 + 512) + 512 + 128 + 4 * 128;
  EXPECT_EQ(factored.optimizer, 4 * (2 * of_layer + 2 * 128 + 2 * (256 + 128) + 256)) << "rows and columns";
}

// Of a local layer: input, its norm, queries, keys, values, result, sum, its norm, hidden layer; log-sum-exp of 4 heads
// and 4 statistics of norms. Above it the last input and its norm, and 8 numbers of the loss.
TEST(MemoryEstimate, ActivationsOfAHandWorkedModel) {
  const std::int64_t layer = 8 * 128 + 512 + 4 + 4;
  const MemoryEstimate estimate = estimate_training_memory(experiment({"attention.content=local"}));
  EXPECT_EQ(estimate.activations, 4 * 4096 * (2 * layer + 2 * 128 + 8));
  const MemoryEstimate again =
      estimate_training_memory(experiment({"attention.content=local", "model.checkpoint_activations=true"}));
  EXPECT_EQ(again.activations, 4 * 4096 * (2 * 128 + layer + 2 * 128 + 8))
      << "inputs of layers, and one layer at a time";
}

// Beside 40 bytes for each head of a token, four for each place in a list of keys that heads share.
TEST(MemoryEstimate, ListsOfKeysOfTheirOwnCountAsPlans) {
  const auto plans = [](const std::vector<std::string>& settings) {
    return estimate_training_memory(experiment(settings)).plans;
  };
  constexpr std::int64_t kTokens = 4 * 1024;
  EXPECT_EQ(plans({"attention.content=local"}), 2 * kTokens * 4 * 40);
  EXPECT_EQ(plans({"attention.content=fixed", "fixed.stride=64", "fixed.summary=16"}), 2 * kTokens * (4 * 40 + 1));
  // Blocks of 4 x 8 read 8 rows of 32 columns: each pixel is in 2 x 4 rectangles.
  EXPECT_EQ(plans({"attention.content=local2d", "model.image_height=32", "model.image_width=64", "local2d.rows=4",
                   "local2d.columns=8", "local2d.above=4", "local2d.beside=12"}),
            2 * kTokens * (4 * 40 + 4 * 8));
}

// What products read is kept in two bytes per number; attention only where its loops round.
TEST(MemoryEstimate, ActivationsInBfloat16OfAHandWorkedModel) {
  const std::int64_t rows = attend_keeps_halves(MatmulPrecision::bf16) ? 2 : 4;
  // Two inputs and the result of attention in float32; their norms, heads for the output layer and the hidden layer.
  const std::int64_t layer = 4 * (3 * 128 + 4 + 4) + 2 * (3 * 128 + 512) + rows * 3 * 128;
  const MemoryEstimate estimate =
      estimate_training_memory(experiment({"attention.content=local", "train.precision=bf16"}));
  EXPECT_EQ(estimate.activations, 4096 * (2 * layer + 4 * (2 * 128 + 8)));
}

TEST(MemoryEstimate, ShiftedKeysAndScaledQueriesAreKeptBesideTheRowsTheyCameFrom) {
  const auto activations = [](const std::string& shift, const std::string& scale) {
    return estimate_training_memory(experiment({"routing.key_shift=" + shift, "routing.learned_scale=" + scale,
                                                "routing.self=only_if_alone"}))
        .activations;
  };
  const ExperimentConfig config = experiment({});
  std::int64_t routed_numbers = 0;
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    const AttentionConfig attention = attention_of_layer(config, layer);
    for (const HeadGroupConfig& group : attention.head_groups) {
      if (std::holds_alternative<RoutingPattern>(group.pattern)) routed_numbers += group.heads * head_dim(attention);
    }
  }
  ASSERT_GT(routed_numbers, 0);
  const std::int64_t none = activations("0", "false");
  EXPECT_EQ(activations("1", "false") - none, 4 * 4096 * routed_numbers);
  EXPECT_EQ(activations("1", "true") - none, 2 * 4 * 4096 * routed_numbers);
}

TEST(MemoryEstimate, TotalIsThePeakAtEitherEndOfTheBackwardPass) {
  MemoryEstimate estimate{.weights = 1,
                          .gradients = 20,
                          .output_gradients = 3,
                          .optimizer = 200,
                          .packed_weights = 1000,
                          .plans = 5000,
                          .activations = 30000,
                          .workspace = 100000};
  EXPECT_EQ(estimate.total(), 136204);
  estimate.gradients = 40000;
  EXPECT_EQ(estimate.total(), 146201);
  estimate.accumulates = true;
  EXPECT_EQ(estimate.total(), 176201);
  EXPECT_TRUE(estimate_training_memory(experiment({"train.accumulation=2"})).accumulates);
  EXPECT_FALSE(estimate_training_memory(experiment()).accumulates);
}

TEST(MemoryEstimate, IsNearWhatTrainingTakes) {
  set_num_threads(2);
  at::set_num_threads(1);
  reuse_tensor_memory();
  if (!measured(experiment())) GTEST_SKIP() << "this system cannot set the peak of memory back";
  const std::vector<std::vector<std::string>> cases{{},
                                                    {"attention.content=local"},
                                                    {"local.relative=true_offset", "local.recency=true"},
                                                    {"model.norm=post", "model.feedforward_dropout=0.1"},
                                                    {"routing.preset=code"},
                                                    {"model.feedforward=geglu"},
                                                    {"train.precision=bf16"},
                                                    {"train.precision=bf16", "model.feedforward=geglu"},
                                                    {"train.batch_size=1", "model.width=256"},
                                                    {"train.order=contiguous", "memory.length=1024"},
                                                    {"model.checkpoint_activations=true", "model.layers=4"}};
  for (const std::vector<std::string>& settings : cases) {
    const ExperimentConfig config = experiment(settings);
    const auto estimate = static_cast<double>(estimate_training_memory(config).total());
    const auto peak = static_cast<double>(measured(config).value_or(0));
    std::string name;
    for (const std::string& setting : settings) name += setting + " ";
    RecordProperty(name, std::to_string(estimate / peak));
    EXPECT_NEAR(estimate / peak, 1.0, 0.15) << name << estimate / 1e6 << " of " << peak / 1e6;
  }
}

TEST(MemoryEstimate, AVocabularyOfTheDataCountsAsTheOneThatWillBeMade) {
  EXPECT_EQ(estimate_training_memory(experiment({"model.vocab_size=0", "data.vocabulary_size=1000"})).weights,
            estimate_training_memory(experiment({"model.vocab_size=1000"})).weights);
}

// A piece of the tokens, and for heads without a window the keys and values of those before, of routed ones the last of
// each cluster.
TEST(MemoryEstimate, OfASharedSequenceIsThatOfThePieceAndOfEarlierRows) {
  const auto activations = [](const char* content, const char* ranks) {
    return estimate_training_memory(
               experiment({std::string("attention.content=") + content, "attention.content_layers=all",
                           "routing.clusters=8", std::string("train.sequence_ranks=") + ranks}))
        .activations;
  };
  EXPECT_EQ(2 * activations("local", "2"), activations("local", "1"));
  const std::int64_t rows_before = 4 * 512 * 2 * 2 * 2 * 32 * 4;  // tokens, layers, heads, keys and values, float32
  EXPECT_EQ(activations("full", "2"), activations("full", "1") / 2 + rows_before);
  EXPECT_EQ(activations("full", "4"), activations("full", "1") / 4 + rows_before / 2 * 3);
  EXPECT_EQ(activations("routing", "2"), activations("routing", "1") / 2 + rows_before) << "8 clusters of 64";
  EXPECT_EQ(activations("routing", "4"), activations("routing", "1") / 4 + rows_before) << "and no more than these";
  const MemoryEstimate whole = estimate_training_memory(experiment());
  EXPECT_EQ(whole.layer_bytes_a_token,
            estimate_training_memory(experiment({"train.sequence_ranks=2"})).layer_bytes_a_token);
  EXPECT_GT(2 * 4096 * whole.layer_bytes_a_token, (whole.activations + whole.plans) * 9 / 10);
  EXPECT_LT(2 * 4096 * whole.layer_bytes_a_token, whole.activations + whole.plans);
}

}  // namespace
}  // namespace routing::memory_estimate_test
