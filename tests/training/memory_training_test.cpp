// Training with a memory of the segments before: the same bits for any number of threads, after a resume and beside
// evaluations; a step that is given up leaves it as it was; what repeats beyond a segment is learnt only with it.
#include "routing/core/parallel.h"
#include "routing/evaluation/likelihood.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/compression.h"
#include "support/segments.h"
#include "training/random_batches.h"
#include "training/run_fixture.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace routing::memory_training_test {
namespace {

std::map<std::string, at::Tensor> state_of(Learner& learner) {
  std::map<std::string, at::Tensor> state = copies(named_tensors(learner.model()));
  for (const auto& [name, value] : learner.memory_state()) state["memory." + name] = value.clone();
  return state;
}

void expect_equal(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) EXPECT_TRUE(at::equal(value, b.at(name))) << name;
}

TEST(MemoryTraining, WeightsAndMemoryAreBitEqualForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const std::string content : {"local", "full", "routing", "convolution", "most_used"}) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const bool compresses = content == "convolution" || content == "most_used";
      ExperimentConfig config = memory_experiment(compresses ? "routing" : content, 100, 70);
      if (compresses) {
        config.memory.compressed = 24;
        config.memory.rate = 5;
        config.memory.compression = parse_word<Compression>(content, "compression");
      }
      config.train.precision = precision;
      config.train.batch_size = 3;
      config.train.accumulation = 2;
      config.model.residual_dropout = config.model.attention_dropout = 0.1;
      std::map<std::string, at::Tensor> one;
      for (const int threads : {1, 2, 3}) {
        set_num_threads(threads);
        at::set_num_threads(threads);
        Learner learner(config);
        for (int step = 0; step < 4; ++step) learner.step(batches_of(config, step));
        const auto state = state_of(learner);
        if (threads == 1) one = state;
        expect_equal(one, state);
        EXPECT_TRUE(state.contains("memory.layer1"));
      }
    }
  }
  set_num_threads(before);
  at::set_num_threads(before);
}

TEST(MemoryTraining, AStepThatIsGivenUpLeavesTheMemoryAsItWas) {
  ExperimentConfig config = memory_experiment("routing", 32, 40);
  config.train.accumulation = 2;
  Learner learner(config);
  learner.step(batches_of(config, 0));
  const auto before = copies(learner.memory_state());
  at::Tensor bias = learner.model().named_parameters()["output_bias"];
  const at::Tensor kept = bias.detach().clone();
  {
    const at::NoGradGuard no_gradient;
    bias.fill_(std::numeric_limits<float>::quiet_NaN());
  }
  EXPECT_THROW(learner.step(batches_of(config, 1)), NotFiniteError);
  expect_equal(before, learner.memory_state());
  {
    const at::NoGradGuard no_gradient;
    bias.copy_(kept);
  }
  // And goes on as if nothing had been.
  Learner undisturbed(config);
  undisturbed.step(batches_of(config, 0));
  learner.step(batches_of(config, 1));
  undisturbed.step(batches_of(config, 1));
  expect_equal(state_of(undisturbed), state_of(learner));
}

TEST(MemoryTraining, ARestoredMemoryGoesOnWithTheSameBitsAndAnotherOneIsRefused) {
  ExperimentConfig config = memory_experiment("full", 32, 40);
  Learner learner(config);
  learner.step(batches_of(config, 0));
  Learner other(config);
  other.restore(copies(named_tensors(learner.model())), copies(learner.optimizer_state()), 1, "here");
  Learner without(config);
  without.restore(copies(named_tensors(learner.model())), copies(learner.optimizer_state()), 1, "here");
  other.restore_memory(copies(learner.memory_state()), "here");
  EXPECT_EQ(learner.step(batches_of(config, 1)).loss_nats, other.step(batches_of(config, 1)).loss_nats);
  expect_equal(state_of(learner), state_of(other));
  EXPECT_THROW(without.restore_memory({}, "here"), FileError);
  auto wrong = copies(learner.memory_state());
  wrong["layer0"] = wrong["layer0"].narrow(0, 0, 1);
  EXPECT_THROW(without.restore_memory(wrong, "here"), FileError);
  ExperimentConfig plain = memory_experiment("full", 64, 0);
  Learner forgets(plain);
  EXPECT_TRUE(forgets.memory_state().empty());
  EXPECT_THROW(forgets.restore_memory(learner.memory_state(), "here"), FileError);
}

class MemoryRun : public Training {
 protected:
  void SetUp() override {
    Training::SetUp();
    config_.train.order = DataOrder::contiguous;
    config_.memory.length = 48;
  }
};

TEST_F(MemoryRun, StoppedAndResumedEndsWithTheSameBitsAndLog) {
  config_.train.accumulation = 2;
  train("whole", false);
  train("parts", false, 2);
  train("parts", true, 7);
  train("parts", true);
  expect_same_end("whole", "parts");
}

TEST_F(MemoryRun, CompressedMemoryResumesExactlyAndLogsItsLossApart) {
  config_.memory.compressed = 24;
  train("whole", false);
  train("parts", false, 5);
  train("parts", true);
  expect_same_end("whole", "parts");
  for (const auto& line : metrics("whole")) {
    if (!line.contains("train_loss_nats")) continue;
    EXPECT_GT(line.at("reconstruction_loss").get<double>(), 0.0);
  }
  // Its weight changes the compression alone; clipping would let the two meet in the norm.
  config_.train.clip = 0.0;
  config_.train.steps = 4;
  train("weighed", false);
  config_.memory.reconstruction = 0.0;
  train("unweighed", false);
  const auto unweighed = weights("unweighed");
  const at::Tensor start = initial_compression(16, 4, at::kFloat);
  EXPECT_TRUE(at::equal(unweighed.at("layer0.compression_weight"), start));
  EXPECT_FALSE(at::equal(weights("weighed").at("layer0.compression_weight"), start));
}

TEST_F(MemoryRun, EvaluationsDoNotDisturbTheMemoryOfTraining) {
  config_.train.eval_every = 1;
  train("often", false);
  config_.train.eval_every = 0;
  train("never", false);
  const auto often = weights("often");
  for (const auto& [name, value] : weights("never")) EXPECT_TRUE(at::equal(value, often.at(name))) << name;
}

// A passage of 24 random tokens, each time another one, comes twice, 48 tokens apart, with other tokens in between. A
// segment has 32 tokens, so only a memory can tell what will come again.
std::vector<std::uint8_t> repeating_text(std::int64_t passages, std::uint64_t seed) {
  std::vector<std::uint8_t> text;
  for (std::int64_t number = 0; number < passages; ++number) {
    const at::Tensor drawn = random_tokens(1, 48, 64, seed + static_cast<std::uint64_t>(number));
    const auto* ids = drawn.data_ptr<std::int64_t>();
    const auto add = [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i) text.push_back(static_cast<std::uint8_t>(ids[i]));
    };
    add(0, 24);
    add(24, 24);
    add(0, 24);
  }
  return text;
}

double bits_after_training(std::int64_t memory) {
  ExperimentConfig config = small_experiment("full");
  config.model.vocab_size = 64;
  config.model.width = 64;
  config.model.feedforward_width = 128;
  config.model.initial_scale = 1.0;
  config.attention.content_heads = 4;
  // Heads that find the token before and read what came next.
  config.patterns.full.shared_query_key = true;
  config.patterns.full.key_shift = 1;
  config.patterns.full.relative = RelativePosition::none;
  config.patterns.full.max_relative = 0;
  config.train.order = DataOrder::contiguous;
  config.train.batch_size = 8;
  config.train.learning_rate = 0.01;
  config.train.steps = 150;
  config.memory.length = memory;
  Learner learner(config);
  const std::vector<std::uint8_t> text = repeating_text(600, 1000);
  const std::int64_t of_a_stream = static_cast<std::int64_t>(text.size()) / config.train.batch_size;
  for (std::int64_t step = 0; step < config.train.steps; ++step) {
    TokenBatch batch{.tokens = at::empty({8, 32}, at::kLong), .sample_ids = at::arange(8, at::kLong) + step * 8};
    for (std::int64_t row = 0; row < 8; ++row) {
      for (std::int64_t i = 0; i < 32; ++i) {
        batch.tokens[row][i] = text[static_cast<std::size_t>(row * of_a_stream + step * 32 + i)];
      }
    }
    batch.index = step;
    learner.step(std::vector<TokenBatch>{batch});
  }
  const std::vector<std::uint8_t> held_out = repeating_text(40, 100000);
  return bits(token_likelihood(learner.model(), held_out, {.sequence_length = 32}).nats_per_token());
}

TEST(MemoryTraining, MemoryPaysOnATextThatRepeatsBeyondOneSegment) {
  const double without = bits_after_training(0);
  const double with = bits_after_training(64);
  // A third of the tokens could be free: 6 bits without, 4 at best with.
  EXPECT_GT(without, 5.95);
  EXPECT_LT(with, 5.75);
  RecordProperty("without", std::to_string(without));
  RecordProperty("with", std::to_string(with));
}

}  // namespace
}  // namespace routing::memory_training_test
