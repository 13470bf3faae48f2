// Samples side by side, against one token after the other by hand; and beams against every sequence there is.
#include "routing/generation/generate.h"

#include "routing/core/error.h"
#include "routing/generation/beam_search.h"
#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace routing::generate_test {
namespace {

using Ids = std::vector<std::int32_t>;

std::shared_ptr<TransformerImpl> model_of(const std::string& content, std::int64_t vocabulary = 256) {
  ExperimentConfig config = small_experiment(content);
  config.model.vocab_size = vocabulary;
  config.model.initial_scale = 3.0;
  return Transformer(config, at::TensorOptions().dtype(at::kFloat)).ptr();
}

std::vector<double> log_softmax(const at::Tensor& logits) {
  const at::Tensor row = at::log_softmax(logits.to(at::kDouble), -1).contiguous();
  return {row.data_ptr<double>(), row.data_ptr<double>() + row.numel()};
}

std::vector<double> log_probabilities_behind(TransformerImpl& model, const Ids& ids) {
  return log_softmax(model.next_logits(std::vector<std::int64_t>(ids.begin(), ids.end()), {}));
}

TEST(Generate, SamplesAreTheDrawsOfOneTokenAfterTheOther) {
  for (const char* content : {"routing", "random"}) {
    const auto model = model_of(content);
    const auto decoder = make_decoder(model);
    const std::vector<Ids> prompts{{1, 2, 3}, {}, {200}};
    const GenerateOptions options{.sampling = {.top_p = 0.9, .repetition_penalty = 1.3, .seed = 4},
                                  .max_new_tokens = 12,
                                  .samples_per_prompt = 2,
                                  .first_sample = 10};
    const std::vector<Sample> samples = generate(*decoder, prompts, options);
    ASSERT_EQ(samples.size(), 6U);
    Sampler sampler(options.sampling);
    for (std::size_t number = 0; number < samples.size(); ++number) {
      EXPECT_EQ(samples[number].prompt, static_cast<std::int64_t>(number / 2));
      EXPECT_EQ(samples[number].stop, StopReason::length);
      Ids text = prompts[number / 2];
      Ids drawn;
      for (int i = 0; i < 12; ++i) {
        const at::Tensor logits = model->next_logits(std::vector<std::int64_t>(text.begin(), text.end()), {});
        const TokenDraw draw =
            sampler.draw({logits.data_ptr<float>(), 256}, text, {.sample = 10 + number, .position = text.size()});
        text.push_back(draw.token);
        drawn.push_back(draw.token);
        EXPECT_EQ(samples[number].log_probabilities.at(static_cast<std::size_t>(i)), draw.log_probability);
      }
      EXPECT_EQ(samples[number].tokens, drawn) << content << " " << number;
    }
  }
}

TEST(Generate, SamplesThatJoinLaterAreTheSame) {
  const auto decoder = make_decoder(model_of("routing"));
  const std::vector<Ids> prompts{{1, 2, 3}, {4}};
  const GenerateOptions options{.max_new_tokens = 9};
  const std::vector<Sample> expected = generate(*decoder, prompts, options);
  Generation generation(*decoder, options);
  generation.begin(prompts[0], 0, 1);
  std::vector<Ids> tokens(2);
  std::vector<std::int64_t> ends;
  for (int round = 0; generation.goes_on(); ++round) {
    if (round == 4) generation.begin(prompts[1], 1, 1);
    for (const Generation::Step& step : generation.step()) {
      tokens.at(step.sample).push_back(step.draw.token);
      if (step.stop) ends.push_back(round);
    }
  }
  EXPECT_EQ(tokens, (std::vector<Ids>{expected[0].tokens, expected[1].tokens}));
  EXPECT_EQ(ends, (std::vector<std::int64_t>{8, 12}));
  EXPECT_TRUE(generation.step().empty());
}

TEST(Generate, AGenerationThatIsLeftDropsItsSequences) {
  const auto decoder = make_decoder(model_of("routing"));
  std::vector<std::int64_t> numbers;
  for (int time = 0; time < 2; ++time) {
    {
      Generation generation(*decoder, {.max_new_tokens = 9});
      generation.begin(Ids{1, 2, 3}, 0, 2);
      generation.step();
    }
    // A place that was given back is the next one's.
    numbers.push_back(decoder->begin(Ids{1}).sequence);
    decoder->drop(numbers.back());
  }
  EXPECT_EQ(numbers[0], numbers[1]);
}

TEST(Generate, SamplesDoNotDependOnHowManyAreDecodedTogether) {
  const auto model = model_of("routing");
  const std::vector<Ids> prompts{{1, 2, 3}, {4}};
  std::vector<std::vector<Ids>> results;
  for (const std::int64_t batch : {1, 2, 3, 64}) {
    const auto decoder = make_decoder(model);
    std::vector<Ids> tokens;
    for (const Sample& sample :
         generate(*decoder, prompts, {.max_new_tokens = 20, .samples_per_prompt = 4, .batch_size = batch})) {
      tokens.push_back(sample.tokens);
    }
    results.push_back(tokens);
    EXPECT_EQ(results.back(), results.front()) << batch;
  }
  EXPECT_NE(results[0][0], results[0][1]);
  EXPECT_NE(results[0][0], results[0][4]);
}

TEST(Generate, EachSampleEndsByItself) {
  const auto model = model_of("routing");
  const auto decoder = make_decoder(model);
  const std::vector<Ids> prompts{{1, 2, 3}};
  const std::vector<Sample> whole = generate(*decoder, prompts, {.max_new_tokens = 30, .samples_per_prompt = 3});
  // An end token that the second sample has somewhere, and a listener that has enough of the third after five.
  const std::int32_t end = whole[1].tokens[6];
  std::vector<std::int64_t> heard(3, 0);
  const std::vector<Sample> cut =
      generate(*decoder, prompts, {.max_new_tokens = 30, .samples_per_prompt = 3, .end_token = end},
               [&](std::size_t sample, const TokenDraw& draw, std::span<const float> logits) {
                 EXPECT_EQ(logits.size(), 256U);
                 EXPECT_EQ(draw.token, whole[sample].tokens.at(static_cast<std::size_t>(heard[sample])));
                 ++heard[sample];
                 return sample != 2 || heard[2] < 5;
               });
  for (std::size_t sample = 0; sample < 3; ++sample) {
    const Ids& all = whole[sample].tokens;
    auto length = static_cast<std::size_t>(std::find(all.begin(), all.end(), end) - all.begin() + 1);
    StopReason stop = length <= 30 ? StopReason::end : StopReason::length;
    length = std::min<std::size_t>(length, 30);
    if (sample == 2 && length > 5) {
      length = 5;
      stop = StopReason::stopped;
    }
    EXPECT_EQ(cut[sample].tokens, Ids(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length)));
    EXPECT_EQ(cut[sample].stop, stop);
    EXPECT_EQ(heard[sample], static_cast<std::int64_t>(length));
  }
  EXPECT_EQ(cut[1].stop, StopReason::end);
  // Nothing is left behind: a new sequence takes the first number again.
  EXPECT_EQ(decoder->begin({}).sequence, 0);
}

TEST(Generate, AnImageEndsWithItsLastValue) {
  ExperimentConfig config = small_experiment("routing");
  config.model.image_height = config.model.image_width = 3;
  config.train.sequence_length = 27;
  config.patterns.local.relative = RelativePosition::none;
  const auto decoder = make_decoder(Transformer(config, at::TensorOptions().dtype(at::kFloat)).ptr());
  const std::vector<Ids> prompts{Ids(9, 77), Ids()};
  const std::vector<Sample> samples = generate(*decoder, prompts, {.max_new_tokens = 1000});
  EXPECT_EQ(samples[0].tokens.size(), 18U);
  EXPECT_EQ(samples[1].tokens.size(), 27U);
}

TEST(Generate, AFailureLeavesNoSequenceBehind) {
  const auto decoder = make_decoder(model_of("routing"));
  const std::vector<Ids> prompts{{1}, {300}};
  EXPECT_THROW(generate(*decoder, prompts, {.max_new_tokens = 3}), InputError);
  EXPECT_EQ(decoder->begin({}).sequence, 0);
}

TEST(Generate, MemoryIsLookedForForAllSamplesTogether) {
  // Full heads of small_experiment take 208 bytes per token: 2 layers, 2 heads, keys and values of 4 floats, 20 bytes.
  const auto decoder = make_decoder(model_of("full"), {.memory_limit = 1 << 20});
  const std::vector<Ids> prompts{{1, 2, 3}};
  const GenerateOptions one{.max_new_tokens = 4000};
  EXPECT_NO_THROW(generate(*decoder, prompts, one, [](auto, const auto&, auto) { return false; }));
  // What ended is there again.
  EXPECT_NO_THROW(generate(*decoder, prompts, one, [](auto, const auto&, auto) { return false; }));
  const GenerateOptions two{.max_new_tokens = 4000, .samples_per_prompt = 2};
  EXPECT_THROW(generate(*decoder, prompts, two), InputError);
}

TEST(Generate, OnlyKnownTokensAreDrawn) {
  const auto decoder = make_decoder(model_of("routing"));
  const std::vector<Ids> prompts{{1, 2, 3}};
  const GenerateOptions options{
      .sampling = {.temperature = 5.0, .top_p = 1.0}, .max_new_tokens = 200, .known_tokens = 9};
  const Ids tokens = generate(*decoder, prompts, options)[0].tokens;
  EXPECT_EQ(*std::max_element(tokens.begin(), tokens.end()), 8);
  for (const Hypothesis& each : beam_search(*decoder, prompts[0], {.max_new_tokens = 20, .known_tokens = 9})) {
    EXPECT_LT(*std::max_element(each.tokens.begin(), each.tokens.end()), 9);
  }
}

TEST(Generate, WrongOptionsAreRefused) {
  const auto decoder = make_decoder(model_of("local"));
  const std::vector<Ids> prompts{{1}};
  EXPECT_THROW(generate(*decoder, prompts, {.max_new_tokens = 0}), ConfigError);
  EXPECT_THROW(generate(*decoder, prompts, {.samples_per_prompt = 0}), ConfigError);
  EXPECT_THROW(generate(*decoder, prompts, {.batch_size = 0}), ConfigError);
  EXPECT_THROW(generate(*decoder, prompts, {.sampling = {.top_p = 0.0}}), ConfigError);
}

// Every sequence of a vocabulary of 5 up to 4 tokens, scored by the model alone.
std::vector<Hypothesis> all_sequences(const std::function<std::vector<double>(const Ids&)>& behind,
                                      const BeamOptions& options) {
  std::vector<Hypothesis> found;
  std::function<void(const Ids&, double)> extend = [&](const Ids& ids, double log_probability) {
    const std::vector<double> next = behind(ids);
    for (std::int32_t token = 0; token < 5; ++token) {
      Ids longer = ids;
      longer.push_back(token);
      const double total = log_probability + next[static_cast<std::size_t>(token)];
      const bool ended = token == options.end_token;
      if (ended || static_cast<std::int64_t>(longer.size()) == options.max_new_tokens) {
        found.push_back(
            {longer, total, total / std::pow(static_cast<double>(longer.size()), options.length_penalty), ended});
      } else {
        extend(longer, total);
      }
    }
  };
  extend({}, 0.0);
  std::stable_sort(found.begin(), found.end(), [](const Hypothesis& a, const Hypothesis& b) {
    return a.ended != b.ended ? a.ended : a.score > b.score;
  });
  return found;
}

TEST(BeamSearch, AWideBeamFindsTheBestOfAllSequences) {
  const auto model = model_of("routing", 5);
  const auto decoder = make_decoder(model);
  const Ids prompt{1, 2, 3};
  for (const double penalty : {0.0, 0.6, 1.0}) {
    for (const std::int64_t end : {-1, 2}) {
      const BeamOptions options{.beams = 5, .max_new_tokens = 4, .end_token = end, .length_penalty = penalty};
      const auto behind = [&](const Ids& ids) {
        Ids text = prompt;
        text.insert(text.end(), ids.begin(), ids.end());
        return log_probabilities_behind(*model, text);
      };
      const std::vector<Hypothesis> expected = all_sequences(behind, options);
      const std::vector<Hypothesis> found = beam_search(*decoder, prompt, options);
      ASSERT_EQ(found.size(), 5U);
      EXPECT_EQ(found[0].tokens, expected[0].tokens) << penalty << " " << end;
      EXPECT_NEAR(found[0].log_probability, expected[0].log_probability, 1e-9);
      for (const Hypothesis& each : found) {
        EXPECT_NEAR(each.score, each.log_probability / std::pow(static_cast<double>(each.tokens.size()), penalty),
                    1e-12);
        EXPECT_EQ(each.ended, each.tokens.back() == end);
      }
    }
  }
  EXPECT_EQ(decoder->begin({}).sequence, 0);
}

TEST(BeamSearch, OneBeamIsGreedy) {
  const auto model = model_of("routing");
  const auto decoder = make_decoder(model);
  const std::vector<Ids> prompts{{9, 8, 7}};
  const Ids greedy = generate(*decoder, prompts, {.sampling = {.temperature = 0.0}, .max_new_tokens = 15})[0].tokens;
  const std::vector<Hypothesis> found = beam_search(*decoder, prompts[0], {.beams = 1, .max_new_tokens = 15});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tokens, greedy);
}

TEST(BeamSearch, WorksOnSourcesToo) {
  ExperimentConfig config = small_pairs_experiment("routing");
  config.model.vocab_size = 5;
  config.model.initial_scale = 3.0;
  const std::shared_ptr<EncoderDecoderImpl> model = EncoderDecoder(config, at::TensorOptions().dtype(at::kFloat)).ptr();
  const auto decoder = make_decoder(model);
  const Ids source{2, 4, 3, 2};
  const BeamOptions options{.beams = 5, .max_new_tokens = 4, .end_token = 1};
  const auto behind = [&](const Ids& ids) {
    const at::NoGradGuard no_gradient;
    at::Tensor targets = at::zeros({1, static_cast<std::int64_t>(ids.size()) + 1}, at::kLong);
    std::copy(ids.begin(), ids.end(), targets.data_ptr<std::int64_t>());
    at::Tensor sources = at::empty({1, 4}, at::kLong);
    std::copy(source.begin(), source.end(), sources.data_ptr<std::int64_t>());
    return log_softmax(model->logits({.tokens = targets, .source = sources}, {})[0][targets.size(1) - 1]);
  };
  const std::vector<Hypothesis> found = beam_search(*decoder, source, options);
  EXPECT_EQ(found[0].tokens, all_sequences(behind, options)[0].tokens);
}

TEST(BeamSearch, WrongOptionsAreRefused) {
  const auto decoder = make_decoder(model_of("local", 5));
  EXPECT_THROW(beam_search(*decoder, Ids{1}, {.beams = 0}), ConfigError);
  EXPECT_THROW(beam_search(*decoder, Ids{1}, {.beams = 6}), ConfigError);
  EXPECT_THROW(beam_search(*decoder, Ids{1}, {.max_new_tokens = 0}), ConfigError);
  EXPECT_THROW(beam_search(*decoder, Ids{1}, {.length_penalty = -1.0}), ConfigError);
}

}  // namespace
}  // namespace routing::generate_test
