// A step of training: bits that do not depend on threads, learning, accumulation, and what happens to numbers that are
// not finite.
#include "routing/training/learner.h"

#include "routing/core/parallel.h"
#include "routing/evaluation/target_accuracy.h"
#include "routing/model/weights.h"
#include "training/random_batches.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace routing::learner_test {
namespace {

void expect_equal(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b,
                  const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) EXPECT_TRUE(at::equal(value, b.at(name))) << what << " " << name;
}

void set_all_threads(int threads) {
  set_num_threads(threads);
  at::set_num_threads(threads);
}

struct Trained {
  std::map<std::string, at::Tensor> tensors;
  std::vector<double> losses;
};

Trained train(const ExperimentConfig& config, int threads, int steps) {
  set_all_threads(threads);
  Learner learner(config);
  Trained result;
  for (int i = 0; i < steps; ++i) result.losses.push_back(learner.step(batches_of(config, i)).loss_nats);
  result.tensors = copies(named_tensors(learner.model()));
  return result;
}

class EveryContent : public testing::TestWithParam<ContentCase> {};

// Sizes that fill several blocks of 64 rows and leave a tail, so that threads really share the work.
TEST_P(EveryContent, WeightsAfterEightStepsAreBitEqualForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    ExperimentConfig config = GetParam().config;
    config.train.precision = precision;
    config.train.batch_size = 3;
    config.train.sequence_length = 101;
    config.model.width = 48;
    config.model.feedforward_width = 80;
    config.model.residual_dropout = 0.1;
    config.model.attention_dropout = 0.1;
    config.train.accumulation = 2;
    const Trained one = train(config, 1, 8);
    for (const int threads : {2, 3}) {
      const Trained more = train(config, threads, 8);
      EXPECT_EQ(one.losses, more.losses);
      expect_equal(one.tensors, more.tensors,
                   std::to_string(threads) + " threads " + std::string(to_string(precision)));
    }
  }
  set_all_threads(before);
}

// Four crops of 256 tokens of noise can only be learnt by heart.
TEST_P(EveryContent, LearnsFourCropsByHeart) {
  set_all_threads(available_cores());
  ExperimentConfig config = GetParam().config;
  config.train.batch_size = 4;
  config.train.sequence_length = 256;
  config.model.width = 64;
  config.model.feedforward_width = 256;
  config.train.learning_rate = 4e-3;
  config.train.schedule = ScheduleKind::constant;
  config.train.warmup_steps = 20;
  config.train.steps = 2000;
  Learner learner(config);
  const std::vector<TokenBatch> crops = batches_of(config, 0);
  double loss = 0.0;
  for (int step = 0; step < 600; ++step) {
    loss = learner.step(crops).loss_nats;
    if (loss < 0.1) break;
  }
  EXPECT_LT(loss, 0.1) << "after " << learner.steps_done() << " steps";
}

INSTANTIATE_TEST_SUITE_P(Contents, EveryContent, testing::ValuesIn(content_cases()),
                         [](const auto& content) { return content.param.name; });

INSTANTIATE_TEST_SUITE_P(Vocabularies, EveryContent,
                         testing::Values(ContentCase{"bands", in_bands(small_experiment("local"))}),
                         [](const auto& content) { return content.param.name; });

// Large enough for torch to spread its own sums over threads, were there any.
TEST(Learner, EveryReportedNumberIsTheSameForAnyNumberOfThreads) {
  ExperimentConfig config = small_experiment();
  config.train.batch_size = 16;
  config.train.sequence_length = 2304;
  const int before = num_threads();
  std::vector<StepResult> results;
  for (const int threads : {1, 2}) {
    set_all_threads(threads);
    Learner learner(config);
    results.push_back(learner.step(batches_of(config, 0)));
  }
  set_all_threads(before);
  EXPECT_GT(results[0].auxiliary_loss, 0.0);
  EXPECT_EQ(results[0].auxiliary_loss, results[1].auxiliary_loss);
  EXPECT_EQ(results[0].loss_nats, results[1].loss_nats);
  EXPECT_EQ(results[0].gradient_norm, results[1].gradient_norm);
  ASSERT_EQ(results[0].routing.size(), results[1].routing.size());
  for (std::size_t i = 0; i < results[0].routing.size(); ++i) {
    const RoutingStatistics& one = results[0].routing[i].statistics;
    const RoutingStatistics& two = results[1].routing[i].statistics;
    EXPECT_EQ(one.commitment_loss, two.commitment_loss);
    EXPECT_EQ(one.occupancy_entropy, two.occupancy_entropy);
    EXPECT_EQ(one.tau_drift, two.tau_drift);
  }
}

TEST(Learner, RestoredStateContinuesWithTheSameBits) {
  ExperimentConfig config = small_experiment();
  config.model.residual_dropout = 0.1;
  Learner whole(config);
  for (int i = 0; i < 3; ++i) whole.step(batches_of(config, i));
  const auto model_tensors = copies(named_tensors(whole.model()));
  const auto optimizer_tensors = copies(whole.optimizer_state());
  for (int i = 3; i < 6; ++i) whole.step(batches_of(config, i));

  Learner restored(config);
  restored.restore(model_tensors, optimizer_tensors, 3, "test");
  EXPECT_EQ(restored.steps_done(), 3);
  for (int i = 3; i < 6; ++i) restored.step(batches_of(config, i));
  expect_equal(named_tensors(whole.model()), named_tensors(restored.model()), "restored");
}

// The authors' learning rate. 256 kinds of tokens: log(256) = 5.55 nats before anything is learnt.
TEST(Learner, AdafactorLearnsCropsByHeartWithTheSameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  std::vector<std::vector<double>> losses;
  for (const OptimizerKind kind : {OptimizerKind::adafactor, OptimizerKind::adafactorw}) {
    ExperimentConfig config = small_experiment();
    config.model.width = 64;
    config.model.feedforward_width = 128;
    config.train.optimizer = kind;
    config.train.schedule = ScheduleKind::rsqrt;
    config.train.warmup_steps = 1000;
    config.train.learning_rate = 0.01;
    config.train.clip = 0.0;
    config.train.weight_decay = 1e-3;
    for (const int threads : {1, 2}) {
      set_all_threads(threads);
      Learner learner(config);
      losses.emplace_back();
      for (int step = 0; step < 200; ++step) losses.back().push_back(learner.step(batches_of(config, 0)).loss_nats);
    }
    EXPECT_GT(losses.back().front(), 5.0);
    EXPECT_LT(losses.back().back(), 0.5);
  }
  set_all_threads(before);
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[2], losses[3]);
  EXPECT_NE(losses[0], losses[2]);
}

TEST(Learner, TwoAccumulatedBatchesEqualOneOfTwiceTheSize) {
  ExperimentConfig config = small_experiment("local");
  config.train.batch_size = 4;
  Learner at_once(config);
  const std::vector<TokenBatch> whole = batches_of(config, 0);
  const StepResult expected = at_once.step(whole);
  config.train.batch_size = 2;
  config.train.accumulation = 2;
  Learner in_parts(config);
  const std::vector<TokenBatch> halves{{whole[0].tokens.slice(0, 0, 2), whole[0].sample_ids.slice(0, 0, 2), 0},
                                       {whole[0].tokens.slice(0, 2, 4), whole[0].sample_ids.slice(0, 2, 4), 1}};
  const StepResult result = in_parts.step(halves);
  EXPECT_NEAR(result.loss_nats, expected.loss_nats, 1e-6);
  EXPECT_NEAR(result.gradient_norm, expected.gradient_norm, 1e-5 * expected.gradient_norm);
  EXPECT_EQ(result.tokens, expected.tokens);
  EXPECT_THROW(in_parts.step(whole), InputError);
}

TEST(Learner, ALossThatIsNotFiniteNamesStepAndBatchAndChangesNothing) {
  ExperimentConfig config = small_experiment();
  Learner learner(config);
  learner.step(batches_of(config, 0));
  const auto moments = copies(learner.optimizer_state());
  {
    const at::NoGradGuard no_gradient;
    learner.model().named_parameters()["output_bias"][3] = std::numeric_limits<float>::quiet_NaN();
  }
  const auto before = copies(named_tensors(learner.model()));
  try {
    learner.step(batches_of(config, 7));
    FAIL() << "the step should have been refused";
  } catch (const NotFiniteError& error) {
    EXPECT_NE(std::string(error.what()).find("step 2"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("batch 7"), std::string::npos) << error.what();
  }
  EXPECT_EQ(learner.steps_done(), 1);
  for (const auto& [name, value] : named_tensors(learner.model())) {
    EXPECT_TRUE(at::allclose(value.to(at::kDouble), before.at(name).to(at::kDouble), 0.0, 0.0, /*equal_nan=*/true))
        << name;
  }
  expect_equal(learner.optimizer_state(), moments, "moments");
}

TEST(Learner, PrecisionAsAskedOrAsTheProcessorLikes) {
  EXPECT_EQ(matmul_precision(Precision::fp32), MatmulPrecision::fp32);
  EXPECT_EQ(matmul_precision(Precision::bf16), MatmulPrecision::bf16);
}

TEST(Learner, Bf16TracksFp32) {
  ExperimentConfig config = small_experiment();
  config.model.width = 64;
  const Trained full = train(config, 2, 20);
  config.train.precision = Precision::bf16;
  const Trained half = train(config, 2, 20);
  EXPECT_NE(full.losses, half.losses);
  for (std::size_t i = 0; i < full.losses.size(); ++i)
    EXPECT_NEAR(half.losses[i], full.losses[i], 0.01 * full.losses[i]);
}

// An encoder-decoder with routed heads in its encoder and nothing but routed heads between source and target.
ExperimentConfig copy_experiment() {
  ExperimentConfig config = small_pairs_experiment();
  config.data.format = DataFormat::copy;
  config.model.vocab_size = 16;
  config.model.layers = 1;
  config.model.width = 64;
  config.model.feedforward_width = 64;
  config.model.initial_scale = 1.0;
  config.attention.heads = 2;
  config.attention.content_heads = 1;
  config.attention.cross_heads = 2;
  config.train.source_length = 16;
  config.train.sequence_length = 17;
  config.train.batch_size = 16;
  config.train.steps = 600;
  config.train.learning_rate = 3e-3;
  return config;
}

TokenBatch copy_batch(const SequencePairs& pairs, std::int64_t rows, std::int64_t index) {
  TokenBatch batch = token_batch(pairs.batch("train", index * rows, rows));
  batch.sample_ids = at::arange(rows, at::kLong) + index * rows;
  batch.index = index;
  return batch;
}

TEST(Learner, LearnsToCopyThroughRoutedCrossAttention) {
  const ExperimentConfig config = copy_experiment();
  const SequencePairs pairs(sequence_task_options(config));
  Learner learner(config);
  SequenceModel& model = learner.model();
  EXPECT_LT(score_pairs(model, pairs, {}).accuracy(), 0.2);
  for (std::int64_t step = 0; step < config.train.steps; ++step) {
    learner.step(std::vector{copy_batch(pairs, config.train.batch_size, step)});
  }
  const double accuracy = score_pairs(model, pairs, {}).accuracy();
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_GT(accuracy, 0.9);
}

TEST(Learner, PaddingDoesNotCountInTheLossOfAnEncoderDecoder) {
  ExperimentConfig config = copy_experiment();
  const SequencePairs pairs({.vocab_size = 16, .shortest = 3, .longest = 16});
  TokenBatch batch = copy_batch(pairs, 6, 0);
  ASSERT_TRUE(batch.valid.defined());
  const std::int64_t targets = batch.valid.sum().item<std::int64_t>();
  ASSERT_LT(targets, batch.valid.numel());
  Learner learner(config);
  const StepResult first = learner.step(std::vector{batch});
  EXPECT_EQ(first.tokens, targets);
  EXPECT_EQ(first.routing.size(), 3U) << "encoder, decoder, cross-attention";
  // The same batch with other things at padding makes the same step.
  Learner other(config);
  batch.tokens = batch.tokens.masked_fill(batch.valid.logical_not(), 9);
  EXPECT_EQ(other.step(std::vector{batch}).loss_nats, first.loss_nats);
  expect_equal(named_tensors(learner.model()), named_tensors(other.model()), "padding");
  batch.valid = at::zeros_like(batch.valid);
  EXPECT_THROW(learner.step(std::vector{batch}), InputError) << "nothing but padding";
}

TEST(Learner, SaysWhichKindOfModelItHolds) {
  Learner text(small_experiment());
  EXPECT_FALSE(text.model().reads_source());
  Learner pairs(copy_experiment());
  EXPECT_TRUE(pairs.model().reads_source());
  pairs.model().eval();
  EXPECT_THROW(pairs.model().probe(random_tokens(1, 16, 16, 1), {}), ConfigError) << "for decoder-only models";
  EXPECT_THROW(text.step(std::vector{copy_batch(SequencePairs(sequence_task_options(copy_experiment())), 2, 0)}),
               InputError)
      << "a source, but no encoder";
}

}  // namespace
}  // namespace routing::learner_test
