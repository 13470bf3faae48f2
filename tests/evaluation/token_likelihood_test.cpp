// The likelihood of a text: every byte once, whatever the windows, batches and threads.
#include "routing/evaluation/token_likelihood.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/evaluation/likelihood.h"
#include "routing/model/transformer.h"
#include "support/segments.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace routing::token_likelihood_test {
namespace {

std::vector<std::uint8_t> text(std::int64_t bytes) {
  const at::Tensor tokens = random_tokens(1, bytes, 256, 11);
  std::vector<std::uint8_t> result;
  for (std::int64_t i = 0; i < bytes; ++i)
    result.push_back(static_cast<std::uint8_t>(tokens[0][i].item<std::int64_t>()));
  return result;
}

Transformer small_model(const std::string& content = "routing") {
  Transformer model(small_experiment(content), at::TensorOptions().dtype(at::kFloat));
  model->train();
  return model;
}

// All weights zero: the logits are the output bias, so every byte costs what its bias says.
TEST(ByteLikelihood, OfAModelThatPredictsUniformlyIsEightBits) {
  Transformer model = small_model();
  const at::NoGradGuard no_gradient;
  for (auto& parameter : model->parameters()) parameter.zero_();
  const Likelihood likelihood = token_likelihood(*model, text(100), {.sequence_length = 32});
  EXPECT_NEAR(bits(likelihood.nats_per_token()), 8.0, 1e-6);
  EXPECT_EQ(likelihood.tokens, 100);
  EXPECT_EQ(likelihood.windows, 4);
}

TEST(ByteLikelihood, OfAModelThatRemembersIsThatOfOneStreamWhateverTheBatch) {
  ExperimentConfig config = memory_experiment("routing", 32, 40);
  config.model.vocab_size = 256;
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  const auto bytes = text(150);
  const at::Tensor tokens = random_tokens(1, 150, 256, 11);
  for (const std::int64_t memory : {0, 40, 100}) {
    config.eval.memory = memory;
    Transformer evaluated(config, at::TensorOptions().dtype(at::kFloat));
    evaluated->eval();
    const std::int64_t remembered = memory == 0 ? 40 : memory;
    const at::Tensor logits = logits_by_segments(*evaluated, tokens, {32, remembered});
    const double expected =
        -at::log_softmax(logits.to(at::kDouble), -1).gather(2, tokens.unsqueeze(2)).sum().item<double>();
    const Likelihood one = token_likelihood(*evaluated, bytes, {.sequence_length = 32, .batch_size = 1});
    EXPECT_NEAR(one.nats, expected, 1e-3);
    EXPECT_EQ(one.tokens, 150);
    EXPECT_EQ(one.windows, 5);
    EXPECT_EQ(one.memory, remembered);
    EXPECT_EQ(token_likelihood(*evaluated, bytes, {.sequence_length = 32, .batch_size = 4}).nats, one.nats);
    // What the options say stands above the configuration.
    EXPECT_EQ(token_likelihood(*model, bytes, {.sequence_length = 32, .memory = remembered}).nats, one.nats);
    EXPECT_NE(token_likelihood(*model, bytes, {.sequence_length = 32, .memory = 0}).nats, one.nats);
  }
  EXPECT_THROW(token_likelihood(*model, bytes, {.sequence_length = 32, .stride = 16}), ConfigError);
}

TEST(ByteLikelihood, TellsOfEveryWindowInItsOrder) {
  Transformer model = small_model();
  const auto bytes = text(83);
  std::vector<std::int64_t> begins;
  double nats = 0.0;
  std::int64_t scored = 0;
  const Likelihood likelihood = token_likelihood(
      *model, bytes, {.sequence_length = 32, .stride = 20, .batch_size = 2, .scored = [&](const ScoredWindow& window) {
                        ASSERT_EQ(window.tokens.size(), window.nats.size());
                        const auto begin = static_cast<std::int64_t>(20 * begins.size());
                        begins.push_back(begin);
                        for (std::size_t i = 0; i < window.tokens.size(); ++i) {
                          const auto place = static_cast<std::size_t>(begin) + i;
                          EXPECT_EQ(window.tokens[i], bytes.at(place));
                          if (static_cast<std::int64_t>(i) < window.scored_from) continue;
                          nats += static_cast<double>(window.nats[i]);
                          ++scored;
                        }
                      }});
  EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 20, 40, 60}));
  EXPECT_EQ(scored, 83);
  EXPECT_NEAR(nats, likelihood.nats, 1e-9);
}

// Window by window, one at a time, with the loss as the model gives it.
TEST(ByteLikelihood, EqualsThePlainSumOverWindows) {
  Transformer model = small_model();
  const auto bytes = text(83);
  for (const std::int64_t stride : {0, 1, 5, 31, 32}) {
    const Likelihood likelihood =
        token_likelihood(*model, bytes, {.sequence_length = 32, .stride = stride, .batch_size = 3});
    EXPECT_EQ(likelihood.tokens, 83);
    const std::int64_t step = stride == 0 ? 32 : stride;
    model->eval();
    const at::NoGradGuard no_gradient;
    double expected = 0.0;
    std::int64_t scored = 0;
    for (std::int64_t begin = 0; scored < 83; begin += step) {
      const std::int64_t end = std::min<std::int64_t>(begin + 32, 83);
      at::Tensor tokens = at::empty({1, end - begin}, at::kLong);
      for (std::int64_t i = begin; i < end; ++i) tokens[0][i - begin] = bytes[static_cast<std::size_t>(i)];
      const at::Tensor nats = model->loss(tokens, {}).nats[0];
      for (; scored < end; ++scored) expected += nats[scored - begin].item<double>();
    }
    EXPECT_NEAR(likelihood.nats, expected, 1e-9 * expected) << "stride " << stride;
  }
}

TEST(ByteLikelihood, BitsDoNotDependOnBatchOrThreads) {
  for (const ContentCase& item : content_cases()) {
    // Random patterns draw for the whole batch's places alike; the other ones look at the sequence alone.
    Transformer model(item.config, at::TensorOptions().dtype(at::kFloat));
    const auto bytes = text(150);
    const double one = token_likelihood(*model, bytes, {.sequence_length = 32, .batch_size = 1}).nats;
    const int before = num_threads();
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      for (const std::int64_t batch : {1, 2, 4}) {
        EXPECT_EQ(one, token_likelihood(*model, bytes, {.sequence_length = 32, .batch_size = batch}).nats)
            << item.name << " threads " << threads << " batch " << batch;
      }
    }
    set_num_threads(before);
  }
}

TEST(ByteLikelihood, LeavesTheModelAsItWasAndReportsTheRouting) {
  Transformer model = small_model();
  const auto before = model->block(0)->attention()->centroids(1)->centroids().clone();
  const Likelihood likelihood = token_likelihood(*model, text(64), {.sequence_length = 32});
  EXPECT_TRUE(model->is_training());
  EXPECT_TRUE(at::equal(before, model->block(0)->attention()->centroids(1)->centroids()));
  ASSERT_EQ(likelihood.routing.size(), 2U);
  EXPECT_EQ(likelihood.routing[1].layer, 1);
  EXPECT_EQ(likelihood.routing[0].statistics.tokens, 64 * 2);
  const double entropy = smallest_occupancy_entropy(likelihood.routing);
  for (const auto& layer : likelihood.routing) {
    for (const double value : layer.statistics.occupancy_entropy) EXPECT_LE(entropy, value);
  }
  EXPECT_EQ(smallest_occupancy_entropy({}), 1.0);
  EXPECT_TRUE(token_likelihood(*small_model("local"), text(64), {.sequence_length = 32}).routing.empty());
}

TEST(ByteLikelihood, ProgressCountsWindowsUpToTheLast) {
  Transformer model = small_model("local");
  std::vector<std::int64_t> seen;
  LikelihoodOptions options{.sequence_length = 32, .batch_size = 2, .limit_tokens = 100};
  options.progress = [&](std::int64_t done, std::int64_t all) {
    EXPECT_EQ(all, 4);
    seen.push_back(done);
  };
  EXPECT_EQ(token_likelihood(*model, text(150), options).tokens, 100);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{2, 3, 4}));
}

TEST(ByteLikelihood, AnEmptyTextIsRefused) {
  EXPECT_THROW(token_likelihood(*small_model(), {}, {}), InputError);
}

TEST(Likelihood, OfImagesIsOfEveryValueOfEveryImage) {
  ExperimentConfig config = small_experiment("local");
  config.model.image_height = 2;
  config.model.image_width = 4;
  config.train.sequence_length = 24;
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  std::vector<std::uint8_t> values(72);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 37);
  const Likelihood all =
      token_likelihood(*model, values, {.sequence_length = 24, .batch_size = 2, .record_length = 24});
  EXPECT_EQ(all.tokens, 72);
  EXPECT_EQ(all.windows, 3);
  double separate = 0.0;
  for (std::int64_t image = 0; image < 3; ++image) {
    separate += token_likelihood(*model, TokenView(values).part(24 * image, 24), {.sequence_length = 24}).nats;
  }
  EXPECT_NEAR(all.nats, separate, 1e-9 * separate);
  const Likelihood first = token_likelihood(*model, values, {.sequence_length = 9, .record_length = 24});
  EXPECT_EQ(first.tokens, 27) << "the first values of each";
}

}  // namespace
}  // namespace routing::token_likelihood_test
