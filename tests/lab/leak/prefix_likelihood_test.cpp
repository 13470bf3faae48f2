// Teacher-forced, future-replaced and prefix-only nats against passes made by hand, for every pattern and selection.
#include "lab/leak/prefix_likelihood.h"

#include "routing/core/error.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace routing::prefix_likelihood_test {
namespace {

constexpr std::int64_t kLength = 32;
constexpr std::int64_t kVocabulary = 24;

// Sums of the two tokens before, so that there is something to learn.
std::vector<std::uint8_t> text(std::int64_t size) {
  std::vector<std::uint8_t> result{1, 2};
  const at::Tensor noise = random_tokens(1, size, 8, 5);
  while (static_cast<std::int64_t>(result.size()) < size) {
    const std::size_t i = result.size();
    const bool noisy = noise.data_ptr<std::int64_t>()[i] == 0;
    result.push_back(static_cast<std::uint8_t>((result[i - 1] + result[i - 2] + (noisy ? 1 : 0)) % kVocabulary));
  }
  return result;
}

at::Tensor as_tensor(const std::vector<std::uint8_t>& ids, std::int64_t begin, std::int64_t count) {
  at::Tensor tokens = at::empty({1, count}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) tokens[0][i] = ids[static_cast<std::size_t>(begin + i)];
  return tokens;
}

// A few steps, and then weights larger than they become in a few steps, so that attention is sharp enough to matter.
Transformer trained_model(ExperimentConfig config) {
  config.model.vocab_size = kVocabulary;
  config.train.learning_rate = 0.02;
  Learner learner(config);
  const std::vector<std::uint8_t> ids = text(1200);
  for (std::int64_t step = 0; step < 8; ++step) {
    const at::Tensor tokens = at::cat({as_tensor(ids, 64 * step, kLength), as_tensor(ids, 64 * step + 32, kLength)});
    const TokenBatch batch{.tokens = tokens, .sample_ids = at::arange(2) + 2 * step, .index = step};
    learner.step({&batch, 1});
  }
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  load_tensors(*model, named_tensors(learner.model()), "test");
  return model;
}

PrefixLikelihoodOptions small_options() {
  return {.sampling = {.sequence_length = kLength, .windows = 5, .positions = 6, .seed = 3}};
}

TEST(SampledPositions, AreOneOfEachPartOfEachWindow) {
  const PositionSampling sampling{.sequence_length = 100, .windows = 7, .positions = 8, .seed = 2};
  const std::vector<SampledPosition> places = sample_positions(2050, sampling);
  ASSERT_EQ(places.size(), 56U);
  std::set<std::int64_t> begins;
  for (std::size_t k = 0; k < places.size(); ++k) {
    const SampledPosition& place = places[k];
    const auto part = static_cast<std::int64_t>(k % 8);
    EXPECT_EQ(place.window, static_cast<std::int64_t>(k / 8));
    EXPECT_EQ(place.begin % 100, 0);
    EXPECT_LE(place.begin, 1900);
    EXPECT_GE(place.position, part * 100 / 8);
    EXPECT_LT(place.position, (part + 1) * 100 / 8);
    EXPECT_EQ(place.replacement_begin % 100, 0);
    EXPECT_LE(place.replacement_begin, 1900) << "the tail is not a window";
    EXPECT_NE(place.replacement_begin, place.begin);
    begins.insert(place.begin);
  }
  EXPECT_EQ(begins.size(), 7U) << "windows are distinct";
  EXPECT_EQ(sample_positions(2050, sampling), places);
  EXPECT_NE(sample_positions(2050, {.sequence_length = 100, .windows = 7, .positions = 8, .seed = 3}), places);
}

TEST(SampledPositions, MeetEveryPositionAndEveryOtherWindow) {
  std::set<std::int64_t> positions;
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    for (const SampledPosition& place :
         sample_positions(30, {.sequence_length = 10, .windows = 3, .positions = 3, .seed = seed})) {
      positions.insert(place.position);
      pairs.insert({place.begin, place.replacement_begin});
    }
  }
  EXPECT_EQ(positions.size(), 10U);
  EXPECT_EQ(pairs.size(), 6U) << "three windows, two others each";
}

TEST(SampledPositions, AreAsManyAsThereAre) {
  const auto places = sample_positions(35, {.sequence_length = 10, .windows = 99, .positions = 99});
  ASSERT_EQ(places.size(), 30U);
  for (std::size_t k = 0; k < 30; ++k) {
    EXPECT_EQ(places[k].position, static_cast<std::int64_t>(k % 10));
    EXPECT_EQ(places[k].begin, static_cast<std::int64_t>(k / 10 * 10));
  }
}

TEST(SampledPositions, OfImagesBeginWithTheImage) {
  const auto places = sample_positions(60, {.sequence_length = 8, .windows = 5, .positions = 2, .record_length = 12});
  ASSERT_EQ(places.size(), 10U);
  for (std::size_t k = 0; k < places.size(); ++k) {
    EXPECT_EQ(places[k].begin, static_cast<std::int64_t>(k / 2 * 12));
    EXPECT_EQ(places[k].replacement_begin % 12, 0);
    EXPECT_LT(places[k].position, 8);
  }
}

TEST(SampledPositions, RefuseWhatCannotBe) {
  EXPECT_NE(
      message_of<InputError>([] { sample_positions(19, {.sequence_length = 10}); }).find("19 tokens are 1 windows"),
      std::string::npos);
  EXPECT_THROW(sample_positions(100, {.sequence_length = 10, .windows = 0}), InputError);
  EXPECT_THROW(sample_positions(100, {.sequence_length = 10, .positions = 0}), InputError);
  EXPECT_THROW(sample_positions(100, {.sequence_length = 10, .record_length = 9}), InputError);
}

TEST(PrefixLikelihood, HasTheNatsOfPassesMadeByHand) {
  const std::vector<std::uint8_t> ids = text(400);
  for (const auto& [name, config] : content_cases()) {
    SCOPED_TRACE(name);
    Transformer model = trained_model(config);
    PrefixLikelihoodOptions options = small_options();
    options.check_all = true;
    const PrefixLikelihood result = prefix_likelihood(*model, ids, options);
    ASSERT_EQ(result.samples.size(), 30U);
    ASSERT_EQ(result.window_nats.size(), 5U);
    EXPECT_EQ(result.sequence_length, kLength);
    model->eval();
    const at::NoGradGuard no_gradient;
    for (const PrefixSample& sample : result.samples) {
      const auto& [window, begin, i, other] = sample.place;
      const at::Tensor whole = as_tensor(ids, begin, kLength);
      const at::Tensor losses = model->loss(whole, {}).nats[0];
      EXPECT_EQ(sample.teacher_forced, losses[i].item<double>());
      EXPECT_NEAR(result.window_nats[static_cast<std::size_t>(window)], losses.mean().item<double>(), 1e-5);
      const std::int64_t target = ids[static_cast<std::size_t>(begin + i)];

      std::vector<std::int64_t> prefix;
      for (std::int64_t k = 0; k < i; ++k) prefix.push_back(ids[static_cast<std::size_t>(begin + k)]);
      const at::Tensor next = model->next_logits(prefix, {});
      EXPECT_NEAR(sample.prefix_only, -next.log_softmax(0)[target].item<double>(), 2e-6);

      const at::Tensor mixed = at::cat({whole.narrow(1, 0, i), as_tensor(ids, other + i, kLength - i)}, 1);
      const at::Tensor row = model->logits(mixed, {})[0][i];
      EXPECT_NEAR(sample.future_replaced, -row.log_softmax(0)[target].item<double>(), 2e-6);
    }
  }
}

// What each pattern promises, and that it keeps it: measured at every sample, compared bit for bit.
TEST(PrefixLikelihood, IsTheSameBitsWhereASelectionReadsNoFuture) {
  const std::vector<std::uint8_t> ids = text(400);
  for (const auto& [name, config] : content_cases()) {
    SCOPED_TRACE(name);
    Transformer model = trained_model(config);
    PrefixLikelihoodOptions options = small_options();
    options.check_all = true;
    const PrefixLikelihood result = prefix_likelihood(*model, ids, options);
    EXPECT_EQ(result.future_replaced.measured, 30);
    EXPECT_EQ(result.prefix_only.measured, 30);
    const bool reads_future = name == "balanced";
    const bool reads_length = name == "balanced" || name == "random";
    EXPECT_EQ(result.future_replaced.promised, !reads_future);
    EXPECT_EQ(result.prefix_only.promised, !reads_length);
    EXPECT_EQ(result.future_replaced.different == 0, !reads_future) << result.future_replaced.different;
    EXPECT_EQ(result.prefix_only.different == 0, !reads_length) << result.prefix_only.different;
    EXPECT_EQ(result.future_replaced.holds(), !reads_future);
    EXPECT_EQ(result.prefix_only.holds(), !reads_length);
  }
}

TEST(PrefixLikelihood, BelievesAPromiseAfterSomeChecks) {
  const std::vector<std::uint8_t> ids = text(400);
  Transformer model = trained_model(small_experiment("local"));
  PrefixLikelihoodOptions options = small_options();
  options.checks = 4;
  std::int64_t last = 0;
  options.progress = [&](std::int64_t done, std::int64_t all) {
    EXPECT_EQ(done, ++last);
    EXPECT_EQ(all, 5 + 4 + 4);
  };
  const PrefixLikelihood some = prefix_likelihood(*model, ids, options);
  EXPECT_EQ(last, 13);
  EXPECT_EQ(some.future_replaced.measured, 4);
  EXPECT_EQ(some.prefix_only.measured, 4);
  options.progress = {};
  options.check_all = true;
  const PrefixLikelihood all = prefix_likelihood(*model, ids, options);
  for (std::size_t i = 0; i < all.samples.size(); ++i) {
    EXPECT_EQ(some.samples[i].teacher_forced, all.samples[i].teacher_forced);
    EXPECT_EQ(some.samples[i].prefix_only, all.samples[i].prefix_only);
    EXPECT_EQ(some.samples[i].future_replaced, all.samples[i].future_replaced);
  }
}

// Not-a-number is equal to nothing, itself included.
TEST(PrefixLikelihood, MeasuresEverythingOnceAPromiseIsBroken) {
  Transformer model = trained_model(small_experiment("local"));
  {
    const at::NoGradGuard no_gradient;
    for (at::Tensor& parameter : model->parameters()) parameter.fill_(std::nan(""));
  }
  PrefixLikelihoodOptions options = small_options();
  options.checks = 4;
  const PrefixLikelihood result = prefix_likelihood(*model, text(400), options);
  EXPECT_EQ(result.prefix_only.measured, 30);
  EXPECT_EQ(result.prefix_only.different, 30);
  EXPECT_TRUE(result.prefix_only.promised);
  EXPECT_FALSE(result.prefix_only.holds());
}

// Token i is the input of position i + 1, where a selection from the whole sequence can see it. So it must not be in
// the pass that replaces the future: other tokens at i give the same number.
TEST(PrefixLikelihood, ReplacesTheScoredTokenToo) {
  std::vector<std::uint8_t> ids = text(64);
  Transformer model = trained_model(content_cases()[5].config);
  ASSERT_EQ(validity_label(model->config()), "selection reads the future");
  PrefixLikelihoodOptions options{.sampling = {.sequence_length = kLength, .windows = 1, .positions = 1, .seed = 4}};
  const PrefixSample sample = prefix_likelihood(*model, ids, options).samples.front();
  const auto& place = sample.place;
  const at::NoGradGuard no_gradient;
  model->eval();
  const at::Tensor mixed = at::cat({as_tensor(ids, place.begin, place.position),
                                    as_tensor(ids, place.replacement_begin + place.position, kLength - place.position)},
                                   1);
  const std::int64_t target = ids[static_cast<std::size_t>(place.begin + place.position)];
  EXPECT_EQ(sample.future_replaced, model->nats_at(mixed, place.position, target, {}));
  // Text behind the position in the own window is not read at all.
  for (std::int64_t i = place.position + 1; i < kLength; ++i) ids[static_cast<std::size_t>(place.begin + i)] = 0;
  EXPECT_EQ(prefix_likelihood(*model, ids, options).samples.front().future_replaced, sample.future_replaced);
}

TEST(PrefixLikelihood, LeavesTheModelAsItWas) {
  const std::vector<std::uint8_t> ids = text(400);
  Transformer model = trained_model(small_experiment("routing"));
  model->train();
  prefix_likelihood(*model, ids, small_options());
  EXPECT_TRUE(model->is_training());
  for (const LayerStatistics& layer : model->take_evaluation_statistics()) EXPECT_EQ(layer.statistics.tokens, 0);
  PrefixLikelihoodOptions options = small_options();
  options.checks = 0;
  EXPECT_THROW(prefix_likelihood(*model, ids, options), InputError);
}

}  // namespace
}  // namespace routing::prefix_likelihood_test
