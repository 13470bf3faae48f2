// Models that read their sequences piece by piece: the logits of the pass over the whole sequence, bit for bit, at
// every position.
#include "routing/core/error.h"
#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"
#include "routing/ops/embedding.h"
#include "support/pattern_cases.h"
#include "support/small_experiment.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

namespace routing::cached_model_test {
namespace {

constexpr std::int64_t kPositions = 4096;

// Windows of which a list of 4096 tokens holds many, heads that know offsets, and odd sizes everywhere.
ExperimentConfig long_experiment(const std::string& content) {
  ExperimentConfig config = odd_experiment(content, kPositions);
  std::get<StridedPattern>(config.patterns.strided.pattern).stride = 33;
  config.patterns.full.recency = config.patterns.strided.recency = config.patterns.lsh.recency = true;
  config.patterns.lsh.pattern = LshPattern{.buckets = 6, .rounds = 2, .window = 80};
  config.routing.routing().clusters = 7;
  config.routing.routing().window = 90;
  return config;
}

std::vector<ContentCase> causal_cases() {
  std::vector<ContentCase> cases;
  for (const char* content : {"local", "full", "strided", "lsh"}) cases.push_back({content, long_experiment(content)});
  ExperimentConfig blocks = long_experiment("local");
  std::get<LocalPattern>(blocks.patterns.local.pattern).form = LocalForm::block;
  blocks.patterns.local.recency = false;
  cases.push_back({"block", blocks});
  ExperimentConfig image = long_experiment("local2d");
  image.patterns.local2d.pattern = Local2dPattern{.rows = 4, .columns = 5, .above = 3, .beside = 4};
  image.model.image_height = 60;
  image.model.image_width = 23;
  cases.push_back({"local2d", image});
  for (const RoutingSelection selection : {RoutingSelection::nearest, RoutingSelection::threshold}) {
    ExperimentConfig config = long_experiment("routing");
    config.routing.routing().selection = selection;
    config.patterns.local.recency = true;
    config.routing.group.recency = selection == RoutingSelection::threshold;
    if (selection == RoutingSelection::nearest) keys_as_they_stand(config.routing.group);
    config.model.norm = selection == RoutingSelection::nearest ? NormPlacement::post : NormPlacement::pre;
    config.model.feedforward = FeedforwardKind::geglu;
    config.model.embedding_width = 20;
    config.model.tied_output = true;
    config.model.start_symbol = StartSymbol::own;
    cases.push_back({std::string(to_string(selection)), config});
  }
  ExperimentConfig code = long_experiment("routing");
  code.routing = routing_preset(RoutingPreset::code, {.heads = 2, .clusters = 7, .window = 90});
  code.routing.routing().selection = RoutingSelection::threshold;
  cases.push_back({"code", code});
  ExperimentConfig ranks = long_experiment("routing");
  ranks.routing.group.relative = RelativePosition::rank;
  cases.push_back({"ranks", ranks});
  // What converted models have: vectors turned by position, unit keys, each cluster alone; here with a causal
  // selection.
  ExperimentConfig rotary = long_experiment("routing");
  rotary.model.feedforward = FeedforwardKind::gelu;
  rotary.model.head_dim = 10;
  rotary.patterns.local.relative = RelativePosition::none;
  rotary.patterns.local.rotary = Rotary::keys;
  keys_as_they_stand(rotary.routing.group);
  rotary.routing.group.rotary = Rotary::values;
  rotary.routing.group.self = SelfRule::only_if_alone_in_group;
  rotary.routing.group.merge = Merge::mean;
  rotary.routing.routing().norm = RoutingNorm::unit;
  cases.push_back({"rotary", rotary});
  return cases;
}

// Thresholds as training leaves them: some tokens pass none, others several.
void set_thresholds(torch::nn::Module& model) {
  const at::NoGradGuard no_gradient;
  for (auto& buffer : model.named_buffers()) {
    if (buffer.key().find("tau") == std::string::npos) continue;
    buffer.value().copy_(support::random_tensor(buffer.value().sizes(), 17, at::kFloat) * 0.5 + 1.5);
  }
}

// Row i of the result holds what predicts token i of the sequence, read in pieces of so many tokens.
at::Tensor piece_by_piece(const TransformerImpl& model, const at::Tensor& tokens, std::int64_t first_piece,
                          MatmulPrecision precision) {
  ModelCache cache = model.make_cache();
  const std::vector<std::int64_t> sequence{cache.add_sequence()};
  at::Tensor previous = tokens.roll(1, 1);
  std::vector<at::Tensor> rows;
  for (std::int64_t first = 0; first < tokens.size(1);) {
    const std::int64_t count = first == 0 ? first_piece : 1;
    rows.push_back(model.logits_cached(previous.narrow(1, first, count), cache, sequence, {.precision = precision}));
    first += count;
  }
  return at::cat(rows, 1);
}

class CachedModel : public ::testing::TestWithParam<ContentCase> {};

TEST_P(CachedModel, PredictsEveryOf4096PositionsAsTheWholePassDoes) {
  Transformer model(GetParam().config, at::TensorOptions().dtype(at::kFloat));
  model->eval();
  set_thresholds(*model);
  const at::NoGradGuard no_gradient;
  const at::Tensor tokens = random_tokens(1, kPositions, model->config().model.vocab_size, 21);
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const at::Tensor expected = model->logits(tokens, {.precision = precision});
    EXPECT_TRUE(at::equal(piece_by_piece(*model, tokens, 1, precision), expected)) << "one at a time";
    // The steps behind a long piece leave every window of it.
    EXPECT_TRUE(at::equal(piece_by_piece(*model, tokens, 3700, precision), expected)) << "after 3700 at once";
  }
}

INSTANTIATE_TEST_SUITE_P(Contents, CachedModel, ::testing::ValuesIn(causal_cases()),
                         [](const auto& each) { return each.param.name; });

// A model is described by one content pattern; here every layer has heads of all kinds.
struct MixedModel : torch::nn::Module {
  MixedModel() {
    AttentionConfig config{.width = 40, .head_dim = 12, .initial_scale = 1.0, .head_groups = {}};
    for (const support::PatternCase& each : support::pattern_cases(AttentionKind::causal_self)) {
      const auto* routing = std::get_if<RoutingPattern>(&each.group.pattern);
      if (std::holds_alternative<RandomPattern>(each.group.pattern)) continue;
      if (routing != nullptr && routing->selection == RoutingSelection::balanced) continue;
      config.head_groups.push_back(each.group);
    }
    ModelConfig model{.width = 40};
    model.feedforward_width = 64;
    model.initial_scale = 1.0;
    const at::TensorOptions floats = at::TensorOptions().dtype(at::kFloat);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const LayerPlace place{.seed = 3, .layer = layer, .part = "mixed"};
      attention.push_back(
          register_module("attention" + std::to_string(layer), MultiHeadAttention(config, place, floats)));
      feedforward.push_back(register_module("feedforward" + std::to_string(layer), Feedforward(model, place, floats)));
    }
    norm = register_module("norm", LayerNorm(40, floats));
    table = support::random_tensor({37, 40}, 5, at::kFloat);
  }

  template <class Attend>
  at::Tensor logits(const at::Tensor& inputs, MatmulPrecision precision, const Attend& attend) {
    at::Tensor x = routing::embedding(inputs, table);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      x = x + attend(layer, norm->forward(x));
      x = x + feedforward[layer]->forward(norm->forward(x), {.precision = precision});
    }
    return linear(norm->forward(x), table, {}, {.precision = precision});
  }

  std::vector<MultiHeadAttention> attention;
  std::vector<Feedforward> feedforward;
  LayerNorm norm = nullptr;
  at::Tensor table;
};

TEST(CachedModels, AllKindsOfHeadsTogetherPredictEveryOf4096PositionsAsTheWholePassDoes) {
  MixedModel model;
  model.eval();
  set_thresholds(model);
  const at::NoGradGuard no_gradient;
  const at::Tensor inputs = random_tokens(1, kPositions, 37, 22);
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const at::Tensor expected = model.logits(inputs, precision, [&](std::size_t layer, const at::Tensor& x) {
      AttentionState state{.precision = precision};
      return model.attention[layer]->forward(x, state);
    });
    std::vector<AttentionCache> caches;
    for (auto& attention : model.attention) {
      caches.push_back(attention->make_cache({}, precision));
      caches.back().add_sequence(0);
    }
    const std::vector<std::int64_t> sequence{0};
    for (std::int64_t i = 0; i < kPositions; ++i) {
      const at::Tensor row =
          model.logits(inputs.narrow(1, i, 1), precision, [&](std::size_t layer, const at::Tensor& x) {
            return model.attention[layer]->forward_cached(x, caches[layer], sequence, precision);
          });
      ASSERT_TRUE(at::equal(row, expected.narrow(1, i, 1))) << "position " << i;
    }
  }
}

TEST(CachedModels, SequencesOfDifferentLengthsStepTogether) {
  for (const ContentCase& each : causal_cases()) {
    Transformer model(each.config, at::TensorOptions().dtype(at::kFloat));
    model->eval();
    set_thresholds(*model);
    const at::NoGradGuard no_gradient;
    const at::Tensor tokens = random_tokens(3, 200, 37, 23);
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const at::Tensor expected = model->logits(tokens, {.precision = precision});
      const at::Tensor previous = tokens.roll(1, 1);
      ModelCache cache = model->make_cache(precision);
      const std::vector<std::int64_t> lengths{150, 1, 64};
      std::vector<std::int64_t> sequences;
      for (std::int64_t b = 0; b < 3; ++b) {
        sequences.push_back(cache.add_sequence());
        const at::Tensor beginning = previous.narrow(0, b, 1).narrow(1, 0, lengths[static_cast<std::size_t>(b)]);
        const at::Tensor last =
            model->logits_cached(beginning, cache, std::span(sequences).subspan(static_cast<std::size_t>(b), 1),
                                 {.precision = precision, .last_only = true});
        EXPECT_EQ(last.sizes(), at::IntArrayRef({1, 1, 37}));
        EXPECT_TRUE(at::equal(last[0][0], expected[b][lengths[static_cast<std::size_t>(b)] - 1]));
      }
      for (std::int64_t step = 0; step < 50; ++step) {
        std::vector<at::Tensor> next;
        for (std::int64_t b = 0; b < 3; ++b) {
          next.push_back(previous.narrow(0, b, 1).narrow(1, lengths[static_cast<std::size_t>(b)] + step, 1));
        }
        const at::Tensor rows = model->logits_cached(at::cat(next, 0), cache, sequences, {.precision = precision});
        for (std::int64_t b = 0; b < 3; ++b) {
          EXPECT_TRUE(at::equal(rows[b][0], expected[b][lengths[static_cast<std::size_t>(b)] + step])) << each.name;
        }
      }
      EXPECT_EQ(cache.length(sequences[0]), 200);
      EXPECT_EQ(cache.length(sequences[1]), 51);
    }
  }
}

// Forks share rows, and both are read by threads of their own.
TEST(CachedModels, StepsReadInPartsByThreadsAreThoseOfEachSequenceAlone) {
  const support::ThreadGuard guard;
  for (const ContentCase& each : causal_cases()) {
    Transformer model(each.config, at::TensorOptions().dtype(at::kFloat));
    model->eval();
    set_thresholds(*model);
    const at::NoGradGuard no_gradient;
    constexpr std::int64_t kSequences = 9;
    constexpr std::int64_t kShared = 120;
    at::Tensor tokens = random_tokens(kSequences, 220, 37, 29);
    tokens.narrow(1, 0, kShared).copy_(tokens.narrow(0, 0, 1).narrow(1, 0, kShared).expand({kSequences, kShared}));
    const at::Tensor previous = tokens.roll(1, 1);
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const at::Tensor expected = model->logits(tokens, {.precision = precision});
      for (const int threads : {1, 2, 4}) {
        set_num_threads(threads);
        ModelCache cache = model->make_cache(precision);
        std::vector<std::int64_t> sequences{cache.add_sequence()};
        const at::Tensor beginning = previous.narrow(0, 0, 1).narrow(1, 0, kShared);
        model->logits_cached(beginning, cache, sequences, {.precision = precision});
        while (sequences.size() < kSequences) sequences.push_back(cache.fork_sequence(sequences.front()));
        for (std::int64_t step = kShared; step < 220; ++step) {
          // The first three leave one after the other.
          if (step % 20 == 0 && step >= 160) {
            cache.drop_sequence(sequences.front());
            sequences.erase(sequences.begin());
          }
          const auto first = kSequences - static_cast<std::int64_t>(sequences.size());
          const at::Tensor next = previous.narrow(0, first, kSequences - first).narrow(1, step, 1);
          const at::Tensor rows = model->logits_cached(next, cache, sequences, {.precision = precision});
          const at::Tensor wanted = expected.narrow(0, first, kSequences - first).narrow(1, step, 1);
          ASSERT_TRUE(at::equal(rows, wanted)) << each.name << ", " << threads << " threads, position " << step;
        }
      }
    }
  }
}

TEST(CachedModels, APartThatCannotBeReadIsRefusedBeforeAnyIs) {
  const support::ThreadGuard guard;
  set_num_threads(2);
  Transformer model(small_experiment("routing"), at::TensorOptions().dtype(at::kFloat));
  model->eval();
  ModelCache cache = model->make_cache();
  std::vector<std::int64_t> sequences;
  for (int i = 0; i < 4; ++i) sequences.push_back(cache.add_sequence());
  const at::Tensor start = at::zeros({4, 1}, at::kLong);
  model->logits_cached(start, cache, sequences, {});
  const std::vector<std::int64_t> twice{0, 1, 2, 0};
  EXPECT_THROW(model->logits_cached(start, cache, twice, {}), InputError);
  cache.keep_sequence(3);
  EXPECT_THROW(model->logits_cached(start, cache, sequences, {}), InputError);
  for (const std::int64_t sequence : sequences) EXPECT_EQ(cache.length(sequence), 1);
}

// The readers of pieces are elsewhere; this one is alone.
class OnePiece : public PieceExchange {
 public:
  int piece() const override { return 0; }
  int pieces() const override { return 1; }
  at::Tensor gather(const at::Tensor& numbers) override { return numbers.unsqueeze(0); }
  void send(const at::Tensor& /*words*/, int later) override { throw InputError("sent to " + std::to_string(later)); }
  at::Tensor receive(int earlier) override { throw InputError("received from " + std::to_string(earlier)); }
};

TEST(CachedModels, NatsAreThoseOfTheWholePass) {
  for (const ContentCase& each : causal_cases()) {
    Transformer model(each.config, at::TensorOptions().dtype(at::kFloat));
    model->eval();
    const at::NoGradGuard no_gradient;
    const at::Tensor tokens = random_tokens(1, 300, 37, 30);
    const at::Tensor previous = tokens.roll(1, 1);
    const at::Tensor expected = model->loss(tokens, {}).nats;
    ModelCache cache = model->make_cache();
    const std::vector<std::int64_t> sequence{cache.add_sequence()};
    OnePiece alone;
    // The first tokens as the one piece of their sequence, which makes no difference.
    for (const auto& [first, count, pieces] :
         {std::tuple(0, 200, &alone), {200, 100, static_cast<OnePiece*>(nullptr)}}) {
      EXPECT_TRUE(at::equal(model->nats_cached(previous.narrow(1, first, count), tokens.narrow(1, first, count), cache,
                                               sequence, {.pieces = pieces}),
                            expected.narrow(1, first, count)))
          << each.name;
    }
    const auto refused = [&](std::int64_t targets, const CachedContext& context) {
      EXPECT_THROW(model->nats_cached(previous.narrow(1, 0, 5), tokens.narrow(1, 0, targets), cache, sequence, context),
                   InputError);
    };
    refused(4, {});
    refused(5, {.last_only = true});
    refused(5, {.pieces = &alone});  // it has begun
    cache.begin_at(cache.add_sequence(), 7);
    EXPECT_THROW(model->logits_cached(previous.narrow(1, 0, 5), cache, std::vector<std::int64_t>{1}, {}), InputError)
        << "nobody has told what stands before";
  }
}

TEST(CachedModels, PiecesAreForOneSequenceOfADecoderOnlyModel) {
  OnePiece alone;
  Transformer model(long_experiment("local"), at::TensorOptions().dtype(at::kFloat));
  model->eval();
  ModelCache two = model->make_cache();
  const std::vector<std::int64_t> both{two.add_sequence(), two.add_sequence()};
  EXPECT_THROW(model->logits_cached(random_tokens(2, 3, 37, 1), two, both, {.pieces = &alone}), InputError);
  EncoderDecoder pairs(small_pairs_experiment("full"), at::TensorOptions().dtype(at::kFloat));
  pairs->eval();
  ModelCache cache = pairs->make_cache();
  const std::vector<std::int64_t> sequence{pairs->begin_sequence(cache, random_tokens(1, 24, 40, 2), {})};
  EXPECT_THROW(pairs->logits_cached(random_tokens(1, 3, 40, 3), cache, sequence, {.pieces = &alone}), InputError);
  EXPECT_THROW(cache.begin_at(sequence[0], 5), InputError);
}

TEST(CachedModels, ImagesKnowTheirPlaces) {
  ExperimentConfig config = small_experiment("routing");
  config.model.image_height = 6;
  config.model.image_width = 5;
  config.patterns.local.relative = RelativePosition::none;
  config.train.sequence_length = 90;
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  model->eval();
  const at::NoGradGuard no_gradient;
  const at::Tensor values = random_tokens(1, 90, 256, 24);
  const at::Tensor expected = model->logits(values, {});
  EXPECT_TRUE(at::equal(piece_by_piece(*model, values, 1, MatmulPrecision::fp32), expected));
  EXPECT_TRUE(at::equal(piece_by_piece(*model, values, 45, MatmulPrecision::fp32), expected));
  ModelCache cache = model->make_cache();
  const std::vector<std::int64_t> sequence{cache.add_sequence()};
  EXPECT_THROW(model->logits_cached(random_tokens(1, 91, 256, 25), cache, sequence, {}), InputError);
}

TEST(CachedModels, EncoderDecodersReadTheirTargetsPieceByPiece) {
  for (const ContentCase& each : pairs_cases()) {
    for (const PositionKind positions : {PositionKind::sinusoidal, PositionKind::learned}) {
      ExperimentConfig config = each.config;
      config.model.positions = positions;
      config.model.start_symbol = positions == PositionKind::learned ? StartSymbol::own : StartSymbol::zero;
      EncoderDecoder model(config, at::TensorOptions().dtype(at::kFloat));
      model->eval();
      set_thresholds(*model);
      const std::string reason = model->reason_against_cache();
      const bool chooses_from_whole = each.name == "random" || each.name == "balanced" || each.name == "local";
      EXPECT_EQ(reason.empty(), !chooses_from_whole) << each.name << ": " << reason;
      if (!reason.empty()) continue;
      const at::NoGradGuard no_gradient;
      const at::Tensor source = random_tokens(1, 24, 40, 26);
      const at::Tensor target = random_tokens(1, 32, 40, 27);
      for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
        const at::Tensor expected = model->logits({.tokens = target, .source = source}, {.precision = precision});
        ModelCache cache = model->make_cache(precision);
        const std::vector<std::int64_t> sequence{model->begin_sequence(cache, source, {.precision = precision})};
        const at::Tensor previous = target.roll(1, 1);
        for (std::int64_t i = 0; i < 32; ++i) {
          const at::Tensor row =
              model->logits_cached(previous.narrow(1, i, 1), cache, sequence, {.precision = precision});
          EXPECT_TRUE(at::equal(row, expected.narrow(1, i, 1))) << each.name << " at " << i;
        }
      }
    }
  }
}

TEST(CachedModels, OnlyASequenceOfAnEncoderDecoderBeginsWithASource) {
  Transformer model(small_experiment("local"), at::TensorOptions().dtype(at::kFloat));
  model->eval();
  ModelCache cache = model->make_cache();
  EXPECT_THROW(model->begin_sequence(cache, random_tokens(1, 4, 40, 1), {}), InputError);
  EXPECT_EQ(model->begin_sequence(cache, {}, {}), 0);
  EXPECT_EQ(model->begin_sequence(cache, {}, {}), 1);
}

TEST(CachedModels, ForksShareMemoryAndNumbersAreUsedAgain) {
  Transformer model(long_experiment("full"), at::TensorOptions().dtype(at::kFloat));
  model->eval();
  ModelCache cache = model->make_cache();
  const std::int64_t first = cache.add_sequence();
  model->logits_cached(random_tokens(1, 200, 37, 28), cache, std::vector<std::int64_t>{first}, {});
  const std::int64_t bytes = cache.bytes();
  std::vector<std::int64_t> forks;
  for (int i = 0; i < 20; ++i) forks.push_back(cache.fork_sequence(first));
  EXPECT_EQ(cache.bytes(), bytes);
  EXPECT_EQ(cache.length(forks[7]), 200);
  cache.drop_sequence(forks[7]);
  EXPECT_EQ(cache.add_sequence(), forks[7]);
  EXPECT_EQ(cache.length(forks[7]), 0);
  cache.drop_sequence(forks[7]);
  EXPECT_THROW(cache.fork_sequence(forks[7]), InputError);
  EXPECT_THROW(cache.drop_sequence(500), InputError);
  EXPECT_EQ(cache.add_sequence(), forks[7]);
}

TEST(CachedModels, ReservedRoomIsEnough) {
  Transformer model(long_experiment("full"), at::TensorOptions().dtype(at::kFloat));
  model->eval();
  ModelCache cache = model->make_cache();
  const std::int64_t sequence = cache.add_sequence();
  cache.reserve(300);
  const std::int64_t reserved = cache.bytes();
  model->logits_cached(random_tokens(1, 300, 37, 28), cache, std::vector<std::int64_t>{sequence}, {});
  EXPECT_EQ(reserved, 300 * 2 * 2 * (9 + 9) * 4);  // tokens, layers, full heads, keys and values of 9 floats
  // The windows of the local heads come to that: 70 keys each and what a piece of 300 needs for a moment.
  EXPECT_LE(cache.bytes(), reserved + 2 * 1200 * (9 + 9) * 4);
}

TEST(CachedModels, TrainingModeIsRefused) {
  Transformer model(small_experiment("routing"), at::TensorOptions().dtype(at::kFloat));
  ModelCache cache = model->make_cache();
  const std::vector<std::int64_t> sequence{cache.add_sequence()};
  EXPECT_THROW(model->logits_cached(random_tokens(1, 2, 256, 1), cache, sequence, {}), InputError);
}

TEST(CachedModels, ThePredictionBehindATextIsThatOfTheWholePass) {
  for (const ContentCase& each : content_cases()) {
    Transformer model(each.config, at::TensorOptions().dtype(at::kFloat));
    model->eval();
    const at::NoGradGuard no_gradient;
    at::Tensor tokens = random_tokens(1, 20, 256, 29);
    const std::vector<std::int64_t> ids(tokens.data_ptr<std::int64_t>(), tokens.data_ptr<std::int64_t>() + 19);
    tokens[0][19] = 0;
    EXPECT_TRUE(at::equal(model->next_logits(ids, {}), model->logits(tokens, {})[0][19])) << each.name;
    EXPECT_EQ(model->next_logits({}, {}).numel(), 256);
  }
}

}  // namespace
}  // namespace routing::cached_model_test
