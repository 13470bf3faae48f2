// The whole model against the equations in plain tensor code, and what must not change its numbers.
#include "routing/model/transformer.h"

#include "routing/core/error.h"
#include "routing/model/weights.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

namespace routing::transformer_test {
namespace {

at::TensorOptions doubles() {
  return at::TensorOptions().dtype(at::kDouble);
}

// Full attention without relative positions, so that the whole model fits into a few lines of plain tensor code.
ExperimentConfig dense_experiment(NormPlacement norm, FeedforwardKind feedforward, bool tied,
                                  std::int64_t embedding_width) {
  ExperimentConfig config = small_experiment("full");
  config.attention.content_heads = config.attention.heads;
  config.patterns.full.relative = RelativePosition::none;
  config.patterns.full.max_relative = 0;
  config.model.norm = norm;
  config.model.feedforward = feedforward;
  config.model.tied_output = tied;
  config.model.embedding_width = embedding_width;
  return config;
}

using Weights = std::map<std::string, at::Tensor>;

at::Tensor plain_norm(const at::Tensor& x, const Weights& w, const std::string& name) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-6).sqrt() * w.at(name + ".gain") + w.at(name + ".bias");
}

at::Tensor plain_attention(const at::Tensor& x, const Weights& w, const std::string& name, std::int64_t heads) {
  const std::int64_t n = x.size(1);
  const auto split = [&](const char* which) {
    return at::matmul(x, w.at(name + which).t()).view({x.size(0), n, heads, -1}).transpose(1, 2);
  };
  const at::Tensor q = split(".query_weight");
  const at::Tensor future = at::ones({n, n}, at::kBool).triu(1);
  const at::Tensor scores =
      (at::matmul(q, split(".key_weight").transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3))))
          .masked_fill(future, -INFINITY);
  const at::Tensor mixed = at::matmul(at::softmax(scores, -1), split(".value_weight"));
  return at::matmul(mixed.transpose(1, 2).flatten(2), w.at(name + ".output_weight").t());
}

at::Tensor plain_feedforward(const at::Tensor& x, const Weights& w, const std::string& name, FeedforwardKind kind) {
  const auto times = [&](const at::Tensor& input, const char* which) {
    return at::matmul(input, w.at(name + which).t());
  };
  if (kind == FeedforwardKind::relu) {
    const at::Tensor hidden = at::relu(times(x, ".in_weight") + w.at(name + ".in_bias"));
    return times(hidden, ".out_weight") + w.at(name + ".out_bias");
  }
  const at::Tensor g = times(x, ".gate_weight");
  const at::Tensor gelu = 0.5 * g * (1.0 + at::tanh(std::sqrt(2.0 / M_PI) * (g + 0.044715 * g.pow(3))));
  return times(gelu * times(x, ".in_weight"), ".out_weight");
}

at::Tensor plain_logits(const ExperimentConfig& config, const Weights& w, const at::Tensor& tokens) {
  const std::int64_t start = config.model.start_symbol == StartSymbol::own ? config.model.vocab_size : 0;
  const at::Tensor shifted = at::cat({at::full({tokens.size(0), 1}, start, at::kLong), tokens.slice(1, 0, -1)}, 1);
  at::Tensor x = w.at("embedding").index_select(0, shifted.flatten()).view({tokens.size(0), tokens.size(1), -1});
  if (w.count("embedding_out_weight") > 0) {
    x = at::matmul(x, w.at("embedding_out_weight").t()) + w.at("embedding_out_bias");
  }
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    const auto attention = [&](const at::Tensor& in) {
      return plain_attention(in, w, name + ".attention", config.attention.heads);
    };
    const auto feedforward = [&](const at::Tensor& in) {
      return plain_feedforward(in, w, name + ".feedforward", config.model.feedforward);
    };
    if (config.model.norm == NormPlacement::post) {
      x = plain_norm(x + attention(x), w, name + ".attention_norm");
      x = plain_norm(x + feedforward(x), w, name + ".feedforward_norm");
    } else {
      x = x + attention(plain_norm(x, w, name + ".attention_norm"));
      x = x + feedforward(plain_norm(x, w, name + ".feedforward_norm"));
    }
  }
  if (config.model.norm == NormPlacement::pre) x = plain_norm(x, w, "last_norm");
  if (w.count("output_in_weight") > 0) x = at::matmul(x, w.at("output_in_weight").t()) + w.at("output_in_bias");
  const at::Tensor last =
      config.model.tied_output ? w.at("embedding").slice(0, 0, config.model.vocab_size) : w.at("output_weight");
  return at::matmul(x, last.t()) + w.at("output_bias");
}

TEST(Transformer, EqualsTheEquationsInPlainTensors) {
  for (const NormPlacement norm : {NormPlacement::post, NormPlacement::pre}) {
    for (const FeedforwardKind kind : {FeedforwardKind::relu, FeedforwardKind::geglu}) {
      for (const bool tied : {false, true}) {
        for (const std::int64_t inner : {0, 12}) {
          ExperimentConfig config = dense_experiment(norm, kind, tied, inner);
          config.model.start_symbol = norm == NormPlacement::pre ? StartSymbol::own : StartSymbol::zero;
          Transformer model(config, doubles());
          // Gains and biases start as 1 and 0, which would hide them.
          for (auto& parameter : model->named_parameters()) {
            const at::NoGradGuard no_gradient;
            if (parameter.value().dim() == 1) {
              parameter.value().add_(at::linspace(-0.5, 0.5, parameter.value().numel(), doubles()));
            }
          }
          model->eval();
          const at::Tensor tokens = random_tokens(2, 11, 256, 3);
          const at::Tensor expected = plain_logits(config, named_tensors(*model), tokens);
          EXPECT_TRUE(at::allclose(model->logits(tokens, {}), expected, 1e-10, 1e-12));
          const at::Tensor nats = -at::log_softmax(expected, -1).gather(2, tokens.unsqueeze(2)).squeeze(2);
          EXPECT_TRUE(at::allclose(model->loss(tokens, {}).nats, nats, 1e-10, 1e-12));
        }
      }
    }
  }
}

TEST(Transformer, HasAsManyParametersAsCountedByHand) {
  ExperimentConfig config = dense_experiment(NormPlacement::pre, FeedforwardKind::relu, false, 0);
  // A layer: 4 * 16 * 16 of attention, 2 * 16 * 32 + 32 + 16 of feed-forward, two norms of 32.
  const std::int64_t layer = 1024 + 1072 + 64;
  EXPECT_EQ(Transformer(config, doubles())->num_parameters(), 256 * 16 + 2 * layer + 32 + 256 * 16 + 256);
  config.model.tied_output = true;
  EXPECT_EQ(Transformer(config, doubles())->num_parameters(), 256 * 16 + 2 * layer + 32 + 256);
  config.model.embedding_projection = true;
  EXPECT_EQ(Transformer(config, doubles())->num_parameters(), 256 * 16 + 16 * 16 + 16 + 2 * layer + 32 + 256);
}

TEST(Transformer, WeightsStartWithinTheLimitOfFanAverageAndBiasesAtZero) {
  Transformer model(small_experiment(), at::TensorOptions().dtype(at::kFloat));
  for (const auto& item : model->named_parameters()) {
    if (item.value().dim() == 2) {
      const double limit = std::sqrt(1.2 / static_cast<double>(item.value().size(0) + item.value().size(1)));
      const double largest = item.value().abs().max().item<double>();
      EXPECT_LE(largest, limit) << item.key();
      EXPECT_GT(largest, 0.9 * limit) << item.key();
    } else if (item.key().find("gain") != std::string::npos) {
      EXPECT_TRUE(item.value().eq(1.0).all().item<bool>()) << item.key();
    } else {
      EXPECT_TRUE(item.value().eq(0.0).all().item<bool>()) << item.key();
    }
  }
}

TEST(Transformer, SeedNamesTheWeights) {
  ExperimentConfig config = small_experiment();
  const auto first = named_tensors(*Transformer(config, doubles()));
  const auto again = named_tensors(*Transformer(config, doubles()));
  config.train.seed = 2;
  const auto other = named_tensors(*Transformer(config, doubles()));
  for (const auto& [name, value] : first) EXPECT_TRUE(at::equal(value, again.at(name))) << name;
  EXPECT_FALSE(at::equal(first.at("embedding"), other.at("embedding")));
  EXPECT_FALSE(at::equal(first.at("layer0.attention.query_weight"), first.at("layer1.attention.query_weight")));
}

// Bit for bit in float32: rows of dense layers do not depend on other rows, and attention reads only the past.
TEST(Transformer, LaterTokensNeverChangeEarlierBits) {
  for (const ContentCase& item : content_cases()) {
    if (item.name == "balanced") continue;  // reads the future, and says so
    Transformer model(item.config, at::TensorOptions().dtype(at::kFloat));
    model->eval();
    const at::NoGradGuard no_gradient;
    const at::Tensor tokens = random_tokens(2, 32, 256, 5);
    const at::Tensor whole = model->logits(tokens, {});
    for (const std::int64_t i : {1, 7, 16, 31}) {
      at::Tensor changed = tokens.clone();
      changed.slice(1, i) = random_tokens(2, 32 - i, 256, 6);
      EXPECT_TRUE(at::equal(model->logits(changed, {}).slice(1, 0, i + 1), whole.slice(1, 0, i + 1)))
          << item.name << " at " << i;
      if (item.name == "random") continue;  // a shorter sequence draws other positions
      EXPECT_TRUE(at::equal(model->logits(tokens.slice(1, 0, i), {}), whole.slice(1, 0, i)))
          << item.name << " cut at " << i;
    }
  }
}

TEST(Transformer, LogitsDependOnEachEarlierToken) {
  const ExperimentConfig config = dense_experiment(NormPlacement::pre, FeedforwardKind::relu, false, 0);
  Transformer model(config, doubles());
  model->eval();
  const at::Tensor tokens = random_tokens(1, 9, 256, 5);
  const at::Tensor whole = model->logits(tokens, {}).select(1, 8);
  for (std::int64_t i = 0; i < 8; ++i) {
    at::Tensor changed = tokens.clone();
    changed[0][i] = (changed[0][i] + 1) % 256;
    EXPECT_FALSE(at::equal(model->logits(changed, {}).select(1, 8), whole)) << i;
  }
}

std::map<std::string, at::Tensor> gradients_of(const ExperimentConfig& config,
                                               std::map<std::string, at::Tensor>* state) {
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  model->train();
  const auto loss = model->loss(random_tokens(2, 32, 256, 9), {.step = 4});
  at::Tensor objective = loss.nats.mean();
  if (loss.auxiliary.defined()) objective = objective + loss.auxiliary;
  objective.backward();
  model->update_centroids();
  std::map<std::string, at::Tensor> gradients;
  for (const auto& item : model->named_parameters()) gradients[item.key()] = item.value().grad();
  *state = named_tensors(*model);
  return gradients;
}

TEST(Transformer, RecomputedActivationsGiveTheSameGradientsAndCentroids) {
  for (ContentCase item : content_cases()) {
    item.config.model.residual_dropout = 0.1;
    item.config.model.attention_dropout = 0.2;
    item.config.model.feedforward_dropout = 0.1;
    item.config.model.embedding_dropout = 0.1;
    item.config.model.input_dropout = 0.1;
    std::map<std::string, at::Tensor> kept_state;
    std::map<std::string, at::Tensor> recomputed_state;
    const auto kept = gradients_of(item.config, &kept_state);
    item.config.model.checkpoint_activations = true;
    const auto recomputed = gradients_of(item.config, &recomputed_state);
    for (const auto& [name, gradient] : kept) {
      ASSERT_EQ(gradient.defined(), recomputed.at(name).defined()) << item.name << " " << name;
      if (!gradient.defined()) continue;
      EXPECT_TRUE(at::equal(gradient, recomputed.at(name))) << item.name << " " << name;
    }
    for (const auto& [name, value] : kept_state) {
      EXPECT_TRUE(at::equal(value, recomputed_state.at(name))) << item.name << " " << name;
    }
  }
}

TEST(Transformer, EveryDropoutActsInTrainingOnly) {
  const at::Tensor tokens = random_tokens(2, 32, 256, 9);
  ExperimentConfig plain = small_experiment();
  Transformer without(plain, doubles());
  without->train();
  const at::Tensor expected = without->logits(tokens, {.step = 1});
  for (double ModelConfig::*const kind :
       {&ModelConfig::embedding_dropout, &ModelConfig::residual_dropout, &ModelConfig::attention_dropout,
        &ModelConfig::feedforward_dropout, &ModelConfig::input_dropout}) {
    ExperimentConfig config = plain;
    config.model.*kind = 0.3;
    Transformer model(config, doubles());
    model->train();
    const at::Tensor first = model->logits(tokens, {.step = 1});
    EXPECT_FALSE(at::allclose(first, expected));
    EXPECT_TRUE(at::equal(first, model->logits(tokens, {.step = 1}))) << "the same step draws the same";
    EXPECT_FALSE(at::allclose(first, model->logits(tokens, {.step = 2})));
    // A sample keeps its draws wherever it stands in the batch.
    const at::Tensor swapped =
        model->logits(tokens.flip({0}), {.sample_ids = at::tensor({1, 0}, at::kLong), .step = 1});
    EXPECT_TRUE(at::allclose(swapped.flip({0}), first, 1e-12, 1e-14));
    model->eval();
    without->eval();
    EXPECT_TRUE(at::equal(model->logits(tokens, {}), without->logits(tokens, {})));
    without->train();
  }
}

// A word model: id 0 is <eos>.
ExperimentConfig word_experiment(bool tied) {
  ExperimentConfig config = small_experiment("full");
  config.model.vocab_size = 50;
  config.model.tied_output = tied;
  config.model.start_symbol = StartSymbol::own;
  return config;
}

TEST(StartSymbol, IsWhatTheFirstPredictionReadsAndEosIsNot) {
  for (const bool tied : {false, true}) {
    Transformer model(word_experiment(tied), doubles());
    model->eval();
    const at::NoGradGuard no_gradient;
    const at::Tensor tokens = random_tokens(2, 9, 49, 3) + 1;  // no <eos> among them
    ASSERT_EQ(named_tensors(*model).at("embedding").sizes(), (std::vector<std::int64_t>{51, 16}));
    const at::Tensor before = model->logits(tokens, {});
    ASSERT_EQ(before.size(2), 50) << "never an output";
    const auto changed_by = [&](std::int64_t row) {
      named_tensors(*model).at("embedding")[row].neg_();
      const at::Tensor after = model->logits(tokens, {});
      named_tensors(*model).at("embedding")[row].neg_();
      // A tied table changes what word 0 is as an output; all others tell what was read.
      return !at::allclose(after.select(1, 0).slice(1, 1), before.select(1, 0).slice(1, 1));
    };
    EXPECT_TRUE(changed_by(50));
    EXPECT_FALSE(changed_by(0));
  }
}

TEST(StartSymbol, InputDropoutNeverMakesAnEos) {
  ExperimentConfig config = word_experiment(false);
  config.model.input_dropout = 0.5;
  const auto gradient_of_rows = [&](StartSymbol symbol) {
    config.model.start_symbol = symbol;
    Transformer model(config, doubles());
    model->train();
    model->loss(random_tokens(2, 32, 49, 4) + 1, {.step = 3}).nats.sum().backward();
    return model->named_parameters()["embedding"].grad().abs().sum(1);
  };
  EXPECT_GT(gradient_of_rows(StartSymbol::zero)[0].item<double>(), 0.0) << "an <eos> where no text has one";
  const at::Tensor rows = gradient_of_rows(StartSymbol::own);
  EXPECT_EQ(rows[0].item<double>(), 0.0);
  EXPECT_GT(rows[50].item<double>(), 0.0);
}

// The output layer is a view of the table; it has to follow when the table is written to, and its gradient to arrive.
TEST(StartSymbol, OfATiedTableLearnsLikeTheEquations) {
  ExperimentConfig config = dense_experiment(NormPlacement::pre, FeedforwardKind::relu, true, 12);
  config.model.start_symbol = StartSymbol::own;
  Transformer model = nullptr;
  {
    const at::NoGradGuard made_without_gradients;
    model = Transformer(config, doubles());
  }
  model->train();
  const at::Tensor tokens = random_tokens(2, 11, 256, 3);
  for (int step = 0; step < 3; ++step) {
    Weights copies;
    for (const auto& [name, value] : named_tensors(*model)) copies[name] = value.detach().clone().requires_grad_(true);
    at::neg(at::log_softmax(plain_logits(config, copies, tokens), -1).gather(2, tokens.unsqueeze(2)).sum()).backward();
    const at::Tensor plain = copies.at("embedding").grad();
    model->zero_grad();
    model->loss(tokens, {}).nats.sum().backward();
    at::Tensor table = model->named_parameters()["embedding"];
    EXPECT_TRUE(at::allclose(table.grad(), plain, 1e-9, 1e-12)) << step;
    const at::NoGradGuard no_gradient;
    table.sub_(table.grad() * 0.01);
  }
}

TEST(Transformer, IsBuiltOnTheMetaDeviceWithTheSameNamesAndShapes) {
  const ExperimentConfig config = small_experiment();
  const auto real = named_tensors(*Transformer(config, at::TensorOptions().dtype(at::kFloat)));
  const auto meta = named_tensors(*Transformer(config, at::TensorOptions().dtype(at::kFloat).device(at::kMeta)));
  ASSERT_EQ(real.size(), meta.size());
  for (const auto& [name, value] : real) {
    EXPECT_EQ(value.sizes(), meta.at(name).sizes()) << name;
    EXPECT_TRUE(meta.at(name).is_meta()) << name;
  }
}

TEST(Transformer, WrongTokensAreRefused) {
  Transformer model(small_experiment(), doubles());
  EXPECT_THROW(model->logits(at::zeros({4}, at::kLong), {}), InputError);
  EXPECT_THROW(model->logits(at::zeros({1, 4}), {}), InputError);
  EXPECT_THROW(model->logits(at::zeros({1, 0}, at::kLong), {}), InputError);
  EXPECT_THROW(model->logits(at::full({1, 4}, 256, at::kLong), {}), InputError);
}

}  // namespace
}  // namespace routing::transformer_test
