// The encoder-decoder against the equations in plain tensor code, its gradients against differences, and what must not
// change its numbers: later targets, padding, recomputation.
#include "routing/model/encoder_decoder.h"

#include "routing/core/error.h"
#include "routing/model/weights.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace routing::encoder_decoder_test {
namespace {

at::TensorOptions doubles() {
  return at::TensorOptions().dtype(at::kDouble);
}
at::TensorOptions floats() {
  return at::TensorOptions().dtype(at::kFloat);
}

// True for the first `lengths` of `longest` tokens.
at::Tensor mask_of(const std::vector<std::int64_t>& lengths, std::int64_t longest) {
  at::Tensor mask = at::zeros({static_cast<std::int64_t>(lengths.size()), longest}, at::kBool);
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    mask[static_cast<std::int64_t>(row)].slice(0, 0, lengths[row]).fill_(true);
  }
  return mask;
}

TokenBatch random_pairs(std::uint64_t seed) {
  return {.tokens = random_tokens(2, 32, 40, seed), .source = random_tokens(2, 24, 40, seed + 1000)};
}

// Sources of 24 and 17 tokens, targets of 20 and 32.
TokenBatch padded_pairs(std::uint64_t seed) {
  TokenBatch batch = random_pairs(seed);
  batch.valid = mask_of({20, 32}, 32);
  batch.source_valid = mask_of({24, 17}, 24);
  return batch;
}

using Weights = std::map<std::string, at::Tensor>;

at::Tensor plain_norm(const at::Tensor& x, const Weights& w, const std::string& name) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-6).sqrt() * w.at(name + ".gain") + w.at(name + ".bias");
}

// Which keys each query may read: bool [batch, 1, queries, keys].
at::Tensor plain_attention(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& readable, const Weights& w,
                           const std::string& name) {
  const auto split = [&](const at::Tensor& in, const char* which) {
    return at::matmul(in, w.at(name + which).t()).view({in.size(0), in.size(1), 4, -1}).transpose(1, 2);
  };
  const at::Tensor q = split(x, ".query_weight");
  const at::Tensor scores =
      at::matmul(q, split(memory, ".key_weight").transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor shares = at::softmax(scores.masked_fill(readable.logical_not(), -INFINITY), -1);
  const at::Tensor mixed = at::matmul(shares, split(memory, ".value_weight"));
  return at::matmul(mixed.transpose(1, 2).flatten(2), w.at(name + ".output_weight").t());
}

// [rows, width] for these places.
at::Tensor plain_sinusoids(const at::Tensor& places, std::int64_t width) {
  const at::Tensor rate =
      at::exp(at::arange(0, width, 2, doubles()) * (-std::log(10000.0) / static_cast<double>(width)));
  const at::Tensor angle = places.to(at::kDouble).unsqueeze(-1) * rate;
  return at::stack({at::sin(angle), at::cos(angle)}, -1).flatten(-2);
}

// A source of n real tokens knows its places from both ends: t and n - 1 - t.
at::Tensor plain_inputs(const ModelConfig& model, const at::Tensor& ids, const at::Tensor& valid, const Weights& w,
                        const std::string& name) {
  at::Tensor x = w.at(name + ".embedding").index_select(0, ids.flatten()).view({ids.size(0), ids.size(1), -1});
  if (w.count(name + ".out_weight") > 0) {
    x = at::matmul(x, w.at(name + ".out_weight").t()) + w.at(name + ".out_bias");
  }
  if (model.positions == PositionKind::learned) return x + w.at(name + ".positions").slice(0, 0, ids.size(1));
  if (model.positions == PositionKind::none) return x;
  const at::Tensor t = at::arange(ids.size(1), at::kLong);
  if (model.positions == PositionKind::factored) {
    const at::Tensor cell = at::floor_divide(t, model.position_stride);
    return x + w.at(name + ".position_cells").index_select(0, cell) +
           w.at(name + ".position_places").index_select(0, t.remainder(model.position_stride));
  }
  if (name == "target") return 4.0 * x + plain_sinusoids(t, 16);
  const at::Tensor from_end = (valid.sum(1, true) - 1 - t).clamp_min(0);
  return 4.0 * x + at::cat({plain_sinusoids(t.expand_as(from_end), 8), plain_sinusoids(from_end, 8)}, -1);
}

struct PlainStack {
  const ExperimentConfig& config;
  const Weights& w;

  template <class Function>
  at::Tensor sub_layer(const at::Tensor& x, const std::string& norm, const Function& function) const {
    if (config.model.norm == NormPlacement::pre) return x + function(plain_norm(x, w, norm));
    return plain_norm(x + function(x), w, norm);
  }
  at::Tensor feedforward(const at::Tensor& x, const std::string& name) const {
    const at::Tensor hidden = at::relu(at::matmul(x, w.at(name + ".in_weight").t()) + w.at(name + ".in_bias"));
    return at::matmul(hidden, w.at(name + ".out_weight").t()) + w.at(name + ".out_bias");
  }
  at::Tensor last_norm(const at::Tensor& x, const std::string& name) const {
    return config.model.norm == NormPlacement::pre ? plain_norm(x, w, name) : x;
  }
};

at::Tensor plain_logits(const ExperimentConfig& config, const Weights& w, const TokenBatch& batch) {
  const PlainStack stack{config, w};
  const std::int64_t m = batch.tokens.size(1);
  const at::Tensor keys = batch.source_valid.unsqueeze(1).unsqueeze(1);
  at::Tensor memory = plain_inputs(config.model, batch.source, batch.source_valid, w, "source");
  memory = stack.sub_layer(memory, "encoder0.attention_norm", [&](const at::Tensor& in) {
    return plain_attention(in, in, keys, w, "encoder0.attention");
  });
  memory = stack.sub_layer(memory, "encoder0.feedforward_norm",
                           [&](const at::Tensor& in) { return stack.feedforward(in, "encoder0.feedforward"); });
  memory = stack.last_norm(memory, "encoder_norm");

  const std::int64_t start = config.model.start_symbol == StartSymbol::own ? config.model.vocab_size : 0;
  const at::Tensor shifted_right = at::cat({at::full({2, 1}, start, at::kLong), batch.tokens.slice(1, 0, -1)}, 1);
  const at::Tensor past = at::ones({m, m}, at::kBool).tril().view({1, 1, m, m});
  at::Tensor x = plain_inputs(config.model, shifted_right, batch.valid, w, "target");
  for (const std::string name : {"decoder0", "decoder1"}) {
    x = stack.sub_layer(x, name + ".attention_norm",
                        [&](const at::Tensor& in) { return plain_attention(in, in, past, w, name + ".attention"); });
    x = stack.sub_layer(x, name + ".cross_norm", [&](const at::Tensor& in) {
      return plain_attention(in, memory, keys, w, name + ".cross_attention");
    });
    x = stack.sub_layer(x, name + ".feedforward_norm",
                        [&](const at::Tensor& in) { return stack.feedforward(in, name + ".feedforward"); });
  }
  x = stack.last_norm(x, "decoder_norm");
  if (w.count("output_in_weight") > 0) x = at::matmul(x, w.at("output_in_weight").t()) + w.at("output_in_bias");
  const at::Tensor last =
      config.model.tied_output ? w.at("target.embedding").slice(0, 0, config.model.vocab_size) : w.at("output_weight");
  return at::matmul(x, last.t()) + w.at("output_bias");
}

// Full attention without relative positions, so that the whole model fits into a few lines of plain tensor code.
ExperimentConfig dense_experiment() {
  ExperimentConfig config = small_pairs_experiment("full");
  config.attention.content_heads = config.attention.heads;
  config.attention.cross_heads = config.attention.heads;
  config.patterns.full.relative = RelativePosition::none;
  config.patterns.full.max_relative = 0;
  return config;
}

TEST(EncoderDecoder, EqualsTheEquationsInPlainTensorsWithPadding) {
  for (const NormPlacement norm : {NormPlacement::post, NormPlacement::pre}) {
    for (const PositionKind positions : kEvery<PositionKind>) {
      for (const std::int64_t inner : {0, 12}) {
        ExperimentConfig config = dense_experiment();
        config.model.norm = norm;
        config.model.positions = positions;
        config.model.position_stride = 5;
        config.model.embedding_width = inner;
        config.model.tied_output = inner == 12;
        config.model.start_symbol = norm == NormPlacement::pre ? StartSymbol::own : StartSymbol::zero;
        EncoderDecoder model(config, doubles());
        // Gains and biases start as 1 and 0, which would hide them.
        for (auto& parameter : model->named_parameters()) {
          const at::NoGradGuard no_gradient;
          if (parameter.value().dim() == 1) {
            parameter.value().add_(at::linspace(-0.5, 0.5, parameter.value().numel(), doubles()));
          }
        }
        model->eval();
        const TokenBatch batch = padded_pairs(3);
        const at::Tensor expected = plain_logits(config, named_tensors(*model), batch);
        const at::Tensor real = batch.valid.unsqueeze(2);
        EXPECT_TRUE(at::allclose(model->logits(batch, {}) * real, expected * real, 1e-10, 1e-12));
        const at::Tensor nats =
            -at::log_softmax(expected, -1).gather(2, batch.tokens.unsqueeze(2)).squeeze(2) * batch.valid;
        EXPECT_TRUE(at::allclose(model->loss(batch, {}).nats, nats, 1e-10, 1e-12));
      }
    }
  }
}

TEST(EncoderDecoder, GradientsEqualFiniteDifferences) {
  // Positions decide who reads whom in these patterns, so that small changes of weights change no plan.
  for (const char* content : {"local", "full"}) {
    ExperimentConfig config = small_pairs_experiment(content);
    config.model.positions = PositionKind::learned;
    config.model.feedforward = FeedforwardKind::geglu;  // has no corners
    EncoderDecoder model(config, doubles());
    model->eval();
    const TokenBatch batch = padded_pairs(1);
    model->loss(batch, {}).nats.sum().backward();
    // Each parameter along one random direction of its own.
    std::uint64_t seed = 1;
    for (auto& item : model->named_parameters()) {
      const at::NoGradGuard no_gradient;
      at::Tensor& value = item.value();
      const at::Tensor direction =
          (random_tokens(1, value.numel(), 2001, ++seed).to(at::kDouble) / 1000.0 - 1.0).view(value.sizes());
      const auto loss_at = [&](double step) {
        value.add_(direction, step);
        const double total = model->loss(batch, {}).nats.sum().item<double>();
        value.sub_(direction, step);
        return total;
      };
      const double numeric = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
      const double analytic = (value.grad() * direction).sum().item<double>();
      EXPECT_NEAR(analytic, numeric, 1e-5 * std::max(1.0, std::abs(numeric))) << content << " " << item.key();
    }
  }
}

// Bit for bit in float32: rows of dense layers do not depend on other rows, and the decoder reads only its past.
TEST(EncoderDecoder, LaterTargetsNeverChangeEarlierBits) {
  for (const ContentCase& item : pairs_cases()) {
    if (item.name == "balanced") continue;  // reads the future, and says so
    EncoderDecoder model(item.config, floats());
    model->eval();
    const at::NoGradGuard no_gradient;
    const TokenBatch batch = random_pairs(5);
    const at::Tensor whole = model->logits(batch, {});
    for (const std::int64_t i : {1, 7, 16, 31}) {
      TokenBatch changed = batch;
      changed.tokens = batch.tokens.clone();
      changed.tokens.slice(1, i) = random_tokens(2, 32 - i, 40, 6);
      EXPECT_TRUE(at::equal(model->logits(changed, {}).slice(1, 0, i + 1), whole.slice(1, 0, i + 1)))
          << item.name << " at " << i;
      // Random sets and blocks of cross-attention are drawn and cut by the length of the target.
      if (item.name == "random" || item.name == "local") continue;
      changed.tokens = batch.tokens.slice(1, 0, i);
      EXPECT_TRUE(at::equal(model->logits(changed, {}), whole.slice(1, 0, i))) << item.name << " cut at " << i;
    }
  }
}

TEST(EncoderDecoder, BalancedCrossAttentionReadsTheFuture) {
  ExperimentConfig config = small_pairs_experiment("routing");
  config.attention.content = PatternKind::local;
  config.routing.routing().selection = RoutingSelection::balanced;
  ASSERT_EQ(validity_label(config), "selection reads the future");
  EncoderDecoder model(config, floats());
  model->eval();
  const at::NoGradGuard no_gradient;
  const TokenBatch batch = random_pairs(5);
  TokenBatch changed = batch;
  changed.tokens = batch.tokens.clone();
  changed.tokens.slice(1, 16) = random_tokens(2, 16, 40, 6);
  EXPECT_FALSE(at::equal(model->logits(changed, {}).slice(1, 0, 17), model->logits(batch, {}).slice(1, 0, 17)));
}

TEST(EncoderDecoder, EveryTargetReadsEverySourceToken) {
  const ExperimentConfig config = dense_experiment();
  EncoderDecoder model(config, doubles());
  model->eval();
  TokenBatch batch{.tokens = random_tokens(1, 5, 40, 5), .source = random_tokens(1, 6, 40, 6)};
  const at::Tensor whole = model->logits(batch, {});
  for (std::int64_t i = 0; i < 6; ++i) {
    TokenBatch changed = batch;
    changed.source = batch.source.clone();
    changed.source[0][i] = (changed.source[0][i] + 1) % 40;
    const at::Tensor differs = model->logits(changed, {}).ne(whole).any(2);
    EXPECT_TRUE(differs.all().item<bool>()) << i;
  }
}

TEST(EncoderDecoder, EncodingOnceGivesTheSameLogits) {
  EncoderDecoder model(small_pairs_experiment(), floats());
  model->eval();
  const TokenBatch batch = padded_pairs(7);
  const auto memory = model->encode(batch.source, batch.source_valid, {});
  EXPECT_EQ(memory.values.sizes(), at::IntArrayRef({2, 24, 16}));
  EXPECT_TRUE(at::equal(model->decode(memory, batch.tokens, batch.valid, {}), model->logits(batch, {})));
  EXPECT_TRUE(at::equal(model->decode(memory, batch.tokens, batch.valid, {}), model->logits(batch, {})));
}

TEST(EncoderDecoder, ThePredictionBehindATargetIsThatOfTheWholePass) {
  EncoderDecoder model(small_pairs_experiment(), floats());
  model->eval();
  const at::NoGradGuard no_gradient;
  const TokenBatch pair{.tokens = random_tokens(1, 9, 40, 3), .source = random_tokens(1, 24, 40, 4)};
  const SourceMemory memory = model->encode(pair.source, {}, {});
  const std::vector<std::int64_t> before(pair.tokens.data_ptr<std::int64_t>(),
                                         pair.tokens.data_ptr<std::int64_t>() + 8);
  EXPECT_TRUE(at::equal(model->next_logits(before, {}, memory), model->logits(pair, {})[0][8]));
  EXPECT_THROW(model->next_logits(before, {}), InputError) << "no source";
}

TEST(EncoderDecoder, NamesItsAttentionsInTheOrderOfStatistics) {
  EncoderDecoder model(small_pairs_experiment(), floats());
  EXPECT_TRUE(model->reads_source());
  std::vector<std::string> names;
  for (const SequenceModel::Site& site : model->attentions()) {
    MultiHeadAttention attention = site.attention;
    names.push_back(std::to_string(site.layer) + ": " + attention->config().name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"0: encoder layer 0", "0: layer 0", "0: cross-attention of layer 0",
                                             "1: layer 1", "1: cross-attention of layer 1"}));
}

TEST(TokenBatch, CountsTargetsWithoutPadding) {
  EXPECT_EQ((TokenBatch{.tokens = random_tokens(2, 5, 40, 1)}.targets()), 10);
  const TokenBatch padded = padded_pairs(1);
  EXPECT_EQ(padded.targets(), padded.valid.sum().item<std::int64_t>());
}

struct Learned {
  at::Tensor nats, auxiliary;
  std::map<std::string, at::Tensor> gradients, tensors;
};

// A training step as far as the centroids.
Learned learn(const ExperimentConfig& config, const TokenBatch& batch) {
  EncoderDecoder model(config, floats());
  model->train();
  const auto loss = model->loss(batch, {.step = 4});
  at::Tensor objective = loss.nats.sum();
  if (loss.auxiliary.defined()) objective = objective + loss.auxiliary;
  objective.backward();
  model->update_centroids();
  Learned result{loss.nats.detach(), loss.auxiliary.defined() ? loss.auxiliary.detach() : at::zeros({}), {}, {}};
  for (const auto& item : model->named_parameters()) {
    result.gradients[item.key()] = item.value().grad().defined() ? item.value().grad() : at::zeros({});
  }
  result.tensors = named_tensors(*model);
  return result;
}

void expect_equal(const Learned& a, const Learned& b, const std::string& what) {
  EXPECT_TRUE(at::equal(a.nats, b.nats)) << what;
  EXPECT_TRUE(at::equal(a.auxiliary, b.auxiliary)) << what;
  for (const auto& [name, value] : a.gradients) EXPECT_TRUE(at::equal(value, b.gradients.at(name))) << what << name;
  for (const auto& [name, value] : a.tensors) EXPECT_TRUE(at::equal(value, b.tensors.at(name))) << what << name;
}

TEST(EncoderDecoder, WhatStandsAtPaddingChangesNoBitOfAnything) {
  for (const ContentCase& item : pairs_cases()) {
    const TokenBatch batch = padded_pairs(8);
    TokenBatch changed = batch;
    changed.tokens = at::where(batch.valid, batch.tokens, at::full_like(batch.tokens, -77));
    changed.source = at::where(batch.source_valid, batch.source, at::full_like(batch.source, 1000));
    ASSERT_FALSE(at::equal(changed.tokens, batch.tokens));
    expect_equal(learn(item.config, batch), learn(item.config, changed), item.name + " ");
    EncoderDecoder model(item.config, floats());
    model->eval();
    EXPECT_TRUE(at::equal(model->logits(batch, {}), model->logits(changed, {}))) << item.name;
  }
}

// Were padding a key, a member of a cluster or a mover of centroids, more of it would show.
TEST(EncoderDecoder, MorePaddingChangesNoBitOfWhatIsReal) {
  for (const ContentCase& item : pairs_cases()) {
    if (item.name == "random" || item.name == "local") continue;  // cross-attention is drawn and cut by lengths
    TokenBatch batch{.tokens = random_tokens(2, 20, 40, 9), .source = random_tokens(2, 17, 40, 10)};
    TokenBatch padded{.tokens = at::cat({batch.tokens, random_tokens(2, 12, 40, 11)}, 1),
                      .valid = mask_of({20, 20}, 32),
                      .source = at::cat({batch.source, random_tokens(2, 7, 40, 12)}, 1),
                      .source_valid = mask_of({17, 17}, 24)};
    const Learned without = learn(item.config, batch);
    const Learned with = learn(item.config, padded);
    EXPECT_TRUE(at::equal(with.nats.slice(1, 0, 20), without.nats)) << item.name;
    EXPECT_TRUE(with.nats.slice(1, 20).eq(0).all().item<bool>()) << item.name;
    for (const auto& [name, value] : without.tensors) {
      EXPECT_TRUE(at::equal(value, with.tensors.at(name))) << item.name << " " << name;
    }
    for (const auto& [name, value] : without.gradients) {
      EXPECT_TRUE(at::allclose(value, with.gradients.at(name), 1e-4, 1e-6)) << item.name << " " << name;
    }
    EXPECT_TRUE(at::allclose(without.auxiliary, with.auxiliary, 1e-5, 1e-9)) << item.name;
  }
}

TEST(EncoderDecoder, RecomputedActivationsGiveTheSameGradientsAndCentroids) {
  for (ContentCase item : pairs_cases()) {
    item.config.model.residual_dropout = 0.1;
    item.config.model.attention_dropout = 0.2;
    item.config.model.feedforward_dropout = 0.1;
    item.config.model.embedding_dropout = 0.1;
    item.config.model.input_dropout = 0.1;
    const Learned kept = learn(item.config, padded_pairs(9));
    item.config.model.checkpoint_activations = true;
    expect_equal(kept, learn(item.config, padded_pairs(9)), item.name + " ");
  }
}

TEST(EncoderDecoder, StatisticsNameEveryRoutedAttention) {
  EncoderDecoder model(small_pairs_experiment(), floats());
  model->train();
  model->loss(random_pairs(1), {});
  EXPECT_EQ(model->attention_with_nonfinite_tokens(), "");
  std::vector<std::string> names;
  for (const LayerStatistics& one : model->update_centroids()) names.push_back(one.attention);
  EXPECT_EQ(names, (std::vector<std::string>{"encoder layer 0", "layer 0", "cross-attention of layer 0", "layer 1",
                                             "cross-attention of layer 1"}));
  model->eval();
  model->logits(random_pairs(1), {});
  EXPECT_EQ(model->take_evaluation_statistics().size(), 5U);
}

TEST(EncoderDecoder, ForgettingWhatWasCollectedLeavesCentroidsAsTheyWere) {
  const ExperimentConfig config = small_pairs_experiment();
  const auto after = [&](bool extra_forward) {
    EncoderDecoder model(config, floats());
    model->train();
    if (extra_forward) {
      model->loss(random_pairs(1), {});
      model->forget_collected();
    }
    model->loss(random_pairs(2), {});
    model->update_centroids();
    return named_tensors(*model);
  };
  const auto expected = after(false);
  for (const auto& [name, value] : after(true)) EXPECT_TRUE(at::equal(value, expected.at(name))) << name;
}

TEST(EncoderDecoder, HasAsManyParametersAsCountedByHand) {
  ExperimentConfig config = dense_experiment();
  // Attention 4 * 16 * 16, feed-forward 2 * 16 * 32 + 32 + 16, norms of 32.
  const std::int64_t attention = 1024 + 32;
  const std::int64_t feedforward = 1072 + 32;
  const std::int64_t layers = 1 * (attention + feedforward) + 2 * (2 * attention + feedforward) + 2 * 32;
  EXPECT_EQ(EncoderDecoder(config, doubles())->num_parameters(), 2 * 40 * 16 + layers + 40 * 16 + 40);
  config.model.tied_output = true;
  EXPECT_EQ(EncoderDecoder(config, doubles())->num_parameters(), 2 * 40 * 16 + layers + 40);
  config.model.positions = PositionKind::learned;
  EXPECT_EQ(EncoderDecoder(config, doubles())->num_parameters(), 2 * 40 * 16 + (24 + 32) * 16 + layers + 40);
}

TEST(EncoderDecoder, IsBuiltOnTheMetaDeviceWithTheSameNamesAndShapes) {
  for (const PositionKind positions : kEvery<PositionKind>) {
    ExperimentConfig config = small_pairs_experiment();
    config.model.positions = positions;
    const auto real = named_tensors(*EncoderDecoder(config, floats()));
    const auto meta = named_tensors(*EncoderDecoder(config, floats().device(at::kMeta)));
    ASSERT_EQ(real.size(), meta.size());
    for (const auto& [name, value] : real) {
      EXPECT_EQ(value.sizes(), meta.at(name).sizes()) << name;
      EXPECT_TRUE(meta.at(name).is_meta()) << name;
    }
  }
}

TEST(EncoderDecoder, WrongInputsAreRefused) {
  ExperimentConfig config = small_pairs_experiment();
  EncoderDecoder model(config, floats());
  const TokenBatch good = padded_pairs(1);
  EXPECT_NO_THROW(model->logits(good, {}));
  const auto with = [&](const std::function<void(TokenBatch&)>& change) {
    TokenBatch batch = good;
    change(batch);
    return batch;
  };
  EXPECT_THROW(model->logits(with([](TokenBatch& b) { b.source = at::Tensor(); }), {}), InputError);
  EXPECT_THROW(model->logits(with([](TokenBatch& b) { b.source = b.source.to(at::kInt); }), {}), InputError);
  EXPECT_THROW(model->logits(with([](TokenBatch& b) { b.source_valid = b.valid; }), {}), InputError);
  EXPECT_THROW(model->logits(with([](TokenBatch& b) { b.source_valid = at::zeros_like(b.source_valid); }), {}),
               InputError);
  EXPECT_THROW(model->logits(with([](TokenBatch& b) { b.tokens = b.tokens.slice(0, 0, 1); }), {}), InputError);
  EXPECT_THROW(model->logits(with([](TokenBatch& b) { b.tokens = b.tokens.clone().fill_(40); }), {}), InputError);
  config.model.positions = PositionKind::learned;
  EncoderDecoder learned(config, floats());
  EXPECT_NO_THROW(learned->logits(good, {}));
  EXPECT_THROW(learned->encode(random_tokens(1, 25, 40, 1), {}, {}), InputError) << "one more than the table";
  config.model.positions = PositionKind::none;
  config.model.encoder_layers = 0;
  EXPECT_THROW(EncoderDecoder(config, floats()), ConfigError);
}

TEST(MakeModel, TheEncoderDecides) {
  EXPECT_NE(std::dynamic_pointer_cast<EncoderDecoderImpl>(make_model(small_pairs_experiment(), floats())), nullptr);
  EXPECT_EQ(std::dynamic_pointer_cast<EncoderDecoderImpl>(make_model(small_experiment(), floats())), nullptr);
}

}  // namespace
}  // namespace routing::encoder_decoder_test
