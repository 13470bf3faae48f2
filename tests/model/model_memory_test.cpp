// Segments with a memory: what one long pass has where nothing is out of reach, the dense formula where something is.
#include "routing/model/model_memory.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/model/transformer.h"
#include "routing/model/weights.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"
#include "support/segments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace routing::model_memory_test {
namespace {

constexpr std::int64_t kText = 512;

// Thresholds as training leaves them: some tokens pass none, others several.
void set_thresholds(torch::nn::Module& model) {
  const at::NoGradGuard no_gradient;
  for (auto& buffer : model.named_buffers()) {
    if (buffer.key().find("tau") == std::string::npos) continue;
    buffer.value().copy_(support::random_tensor(buffer.value().sizes(), 17, at::kFloat) * 0.5 + 1.5);
  }
}

Transformer model_of(const ExperimentConfig& config) {
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  model->eval();
  set_thresholds(*model);
  return model;
}

// Every kind of heads that can remember.
std::vector<ContentCase> remembering_cases(std::int64_t segment, std::int64_t length) {
  std::vector<ContentCase> cases;
  for (const char* content : {"local", "full", "strided", "span", "lsh"}) {
    cases.push_back({content, memory_experiment(content, segment, length)});
    cases.back().config.patterns.span.pattern = SpanPattern{.limit = 60, .ramp = 8, .initial = 0.5};
  }
  cases.back().config.patterns.lsh.pattern = LshPattern{.buckets = 4, .rounds = 2, .window = 30};
  for (const RoutingSelection selection : {RoutingSelection::nearest, RoutingSelection::threshold}) {
    ExperimentConfig config = memory_experiment("routing", segment, length);
    config.routing.routing().selection = selection;
    config.routing.routing().window = 30;
    config.patterns.local.recency = true;
    if (selection == RoutingSelection::nearest) keys_as_they_stand(config.routing.group);
    config.model.norm = selection == RoutingSelection::nearest ? NormPlacement::post : NormPlacement::pre;
    cases.push_back({std::string(to_string(selection)), config});
  }
  ExperimentConfig separate = memory_experiment("routing", segment, length);
  separate.routing.group.shared_query_key = false;
  keys_as_they_stand(separate.routing.group);
  separate.routing.group.self = SelfRule::allowed;
  cases.push_back({"separate", separate});
  return cases;
}

TEST(ModelMemory, ASegmentWithAMemoryEqualsOneLongPassBitForBitWhereNothingIsOutOfReach) {
  const at::NoGradGuard no_gradient;
  for (const ContentCase& each : remembering_cases(64, kText)) {
    Transformer model = model_of(each.config);
    const at::Tensor text = random_tokens(2, kText, 37, 3);
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const at::Tensor whole = model->logits(text, {.precision = precision});
      EXPECT_TRUE(at::equal(logits_by_segments(*model, text, {64, kText}, precision), whole)) << each.name;
      EXPECT_FALSE(at::allclose(logits_by_segments(*model, text, {64, 1}, precision), whole)) << each.name;
    }
  }
}

TEST(ModelMemory, AWindowThatFitsTheMemoryNeedsNoMore) {
  const at::NoGradGuard no_gradient;
  Transformer model = model_of(memory_experiment("local", 64, 64));
  const at::Tensor text = random_tokens(2, kText, 37, 4);
  const at::Tensor whole = model->logits(text, {});
  EXPECT_TRUE(at::equal(logits_by_segments(*model, text, {64, 64}), whole));
  EXPECT_TRUE(at::equal(logits_by_segments(*model, text, {128, 64}), whole));
  // A window of 40 reads 39 tokens before its own. Where tiles of keys begin elsewhere the last bits may differ.
  EXPECT_TRUE(at::allclose(logits_by_segments(*model, text, {50, 39}), whole, 1e-5, 1e-5));
  EXPECT_FALSE(at::allclose(logits_by_segments(*model, text, {50, 38}), whole, 1e-5, 1e-5));
}

using Weights = std::map<std::string, at::Tensor>;

at::Tensor plain_norm(const at::Tensor& x, const Weights& w, const std::string& name) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-6).sqrt() * w.at(name + ".gain") + w.at(name + ".bias");
}

at::Tensor plain_attention(const at::Tensor& x, const Weights& w, const std::string& name, const at::Tensor& mask) {
  const auto heads = [&](const char* which) {
    return at::matmul(x, w.at(name + which).t()).view({x.size(0), x.size(1), 4, -1}).transpose(1, 2);
  };
  const at::Tensor q = heads(".query_weight");
  const at::Tensor scores =
      (at::matmul(q, heads(".key_weight").transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3))))
          .masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  const at::Tensor mixed = at::matmul(at::softmax(scores, -1), heads(".value_weight"));
  return at::matmul(mixed.transpose(1, 2).flatten(2), w.at(name + ".output_weight").t());
}

// Query i of segments of n tokens with a memory of m reads the keys j with floor(i / n) n - m <= j <= i, in each layer.
TEST(ModelMemory, FullHeadsEqualADenseModelWhoseMaskHasTheHorizon) {
  const at::NoGradGuard no_gradient;
  for (const auto& [segment, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{{10, 7}, {8, 20}, {5, 5}}) {
    ExperimentConfig config = memory_experiment("full", segment, length);
    config.attention.content_heads = config.attention.heads;
    config.patterns.full.relative = RelativePosition::none;
    config.patterns.full.max_relative = 0;
    std::get<LocalPattern>(config.patterns.local.pattern).window = 4;
    Transformer model(config, at::TensorOptions().dtype(at::kDouble));
    model->eval();
    const at::Tensor text = random_tokens(2, 43, 37, 5);
    const Weights w = named_tensors(*model);
    const at::Tensor i = at::arange(43, at::kLong).unsqueeze(1);
    const at::Tensor j = at::arange(43, at::kLong).unsqueeze(0);
    const at::Tensor mask = (j <= i).logical_and(j >= i.div(segment, "floor") * segment - length);
    const at::Tensor shifted = at::cat({at::zeros({2, 1}, at::kLong), text.slice(1, 0, -1)}, 1);
    at::Tensor x = w.at("embedding").index_select(0, shifted.flatten()).view({2, 43, -1});
    for (const std::string layer : {"layer0", "layer1"}) {
      x = x + plain_attention(plain_norm(x, w, layer + ".attention_norm"), w, layer + ".attention", mask);
      const std::string name = layer + ".feedforward";
      const at::Tensor in = plain_norm(x, w, layer + ".feedforward_norm");
      const at::Tensor hidden = at::relu(at::matmul(in, w.at(name + ".in_weight").t()) + w.at(name + ".in_bias"));
      x = x + at::matmul(hidden, w.at(name + ".out_weight").t()) + w.at(name + ".out_bias");
    }
    const at::Tensor expected =
        at::matmul(plain_norm(x, w, "last_norm"), w.at("output_weight").t()) + w.at("output_bias");
    EXPECT_TRUE(at::allclose(logits_by_segments(*model, text, {segment, length}), expected, 1e-10, 1e-10));
  }
}

std::map<std::string, at::Tensor> gradients_of_second_segment(Transformer& model, bool graph_of_the_first) {
  model->zero_grad();
  const at::Tensor text = random_tokens(2, 128, 37, 6);
  ModelMemory memory{.length = 100};
  {
    const at::AutoGradMode mode(graph_of_the_first);
    model->loss(text.narrow(1, 0, 64), {.memory = &memory});
  }
  for (const at::Tensor& layer : memory.layers) EXPECT_FALSE(layer.requires_grad());
  model->loss(text.narrow(1, 64, 64), {.step = 1, .memory = &memory}).nats.sum().backward();
  std::map<std::string, at::Tensor> gradients;
  for (const auto& item : model->named_parameters()) {
    if (item.value().grad().defined()) gradients[item.key()] = item.value().grad().clone();
  }
  return gradients;
}

TEST(ModelMemory, NoGradientEntersItAndRecomputedLayersHaveTheSameGradients) {
  for (const ContentCase& each : remembering_cases(64, 100)) {
    ExperimentConfig config = each.config;
    config.model.residual_dropout = config.model.attention_dropout = config.model.input_dropout = 0.1;
    Transformer model(config, at::TensorOptions().dtype(at::kFloat));
    model->train();
    const auto with_graph = gradients_of_second_segment(model, true);
    model->forget_collected();
    const auto as_constant = gradients_of_second_segment(model, false);
    config.model.checkpoint_activations = true;
    Transformer recomputed(config, at::TensorOptions().dtype(at::kFloat));
    recomputed->train();
    const auto again = gradients_of_second_segment(recomputed, true);
    ASSERT_GT(with_graph.size(), 10U);
    for (const auto& [name, gradient] : with_graph) {
      EXPECT_TRUE(at::equal(gradient, as_constant.at(name))) << each.name << " " << name;
      EXPECT_TRUE(at::equal(gradient, again.at(name))) << each.name << " " << name;
    }
  }
}

TEST(ModelMemory, LaterTokensChangeNoEarlierBitOverSegments) {
  const at::NoGradGuard no_gradient;
  for (const ContentCase& each : remembering_cases(50, 70)) {
    Transformer model = model_of(each.config);
    const at::Tensor text = random_tokens(1, 230, 37, 7);
    const at::Tensor before = logits_by_segments(*model, text, {50, 70});
    for (const std::int64_t place : {0, 49, 50, 51, 99, 149, 150, 180, 229}) {
      at::Tensor changed = text.clone();
      changed.narrow(1, place, 230 - place).copy_(random_tokens(1, 230 - place, 37, 8));
      const at::Tensor after = logits_by_segments(*model, changed, {50, 70});
      EXPECT_TRUE(at::equal(after.narrow(1, 0, place + 1), before.narrow(1, 0, place + 1))) << each.name << place;
    }
  }
}

TEST(ModelMemory, BitsDoNotDependOnThreadsNorOnOtherStreams) {
  const at::NoGradGuard no_gradient;
  const int before = num_threads();
  for (const ContentCase& each : remembering_cases(50, 70)) {
    Transformer model = model_of(each.config);
    const at::Tensor text = random_tokens(3, 230, 37, 9);
    set_num_threads(1);
    const at::Tensor expected = logits_by_segments(*model, text, {50, 70});
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      EXPECT_TRUE(at::equal(logits_by_segments(*model, text, {50, 70}), expected)) << each.name;
    }
    EXPECT_TRUE(at::equal(logits_by_segments(*model, text.narrow(0, 1, 1), {50, 70}), expected.narrow(0, 1, 1)));
  }
  set_num_threads(before);
}

// Centroids, thresholds and statistics count each token once, in its own segment.
TEST(ModelMemory, RoutedHeadsLearnFromNewTokensOnly) {
  const ExperimentConfig config = memory_experiment("routing", 64, 100);
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  model->train();
  ModelMemory memory{.length = 100};
  const at::Tensor text = random_tokens(2, 128, 37, 10);
  model->loss(text.narrow(1, 0, 64), {.memory = &memory});
  model->forget_collected();
  model->loss(text.narrow(1, 64, 64), {.step = 1, .memory = &memory});
  for (const SequenceModel::RoutedGroup& group : model->routed_groups()) {
    for (const ClusterTotals& head : group.centroids->pending().totals[0]) EXPECT_EQ(head.tokens, 2 * 64);
  }
}

TEST(ModelMemory, HoldsTheInputsOfTheLastTokensAndTheLastToken) {
  const at::NoGradGuard no_gradient;
  Transformer model = model_of(memory_experiment("local", 8, 20));
  const at::Tensor text = random_tokens(2, 24, 37, 11);
  ModelMemory memory{.length = 20};
  for (const std::int64_t read : {8, 16, 24}) {
    const ModelMemory kept = memory;
    model->logits(text.narrow(1, read - 8, 8), {.memory = &memory});
    for (const at::Tensor& layer : memory.layers) {
      EXPECT_EQ(layer.sizes(), at::IntArrayRef({2, std::min<std::int64_t>(read, 20), 36}));
    }
    EXPECT_TRUE(at::equal(memory.last_tokens, text.select(1, read - 1)));
    // The first layer reads embeddings of the tokens, each at the place of the next.
    const at::Tensor ids = text.narrow(1, std::max<std::int64_t>(0, read - 21), std::min<std::int64_t>(read - 1, 20));
    const at::Tensor table = model->named_parameters()["embedding"];
    const at::Tensor rows = table.index_select(0, ids.flatten()).view({2, -1, 36});
    EXPECT_TRUE(at::equal(memory.layers[0].narrow(1, memory.layers[0].size(1) - rows.size(1), rows.size(1)), rows));
    EXPECT_EQ(kept.layers.empty(), read == 8) << "a copy stays as it was";
  }
  ModelMemory copy{.length = 20};
  copy.set_tensors(memory.tensors());
  EXPECT_TRUE(at::equal(copy.layers[1], memory.layers[1]));
  EXPECT_TRUE(at::equal(copy.last_tokens, memory.last_tokens));
  EXPECT_EQ(memory.bytes(), 2 * (2 * 20 * 36 * 4) + 2 * 8);
}

TEST(ModelMemory, OfOtherTextsOrModelsIsRefused) {
  const at::NoGradGuard no_gradient;
  Transformer model = model_of(memory_experiment("local", 8, 20));
  ModelMemory memory{.length = 20};
  model->logits(random_tokens(2, 8, 37, 12), {.memory = &memory});
  EXPECT_NE(message_of<InputError>([&] {
              model->logits(random_tokens(3, 8, 37, 12), {.memory = &memory});
            }).find("3 texts are read"),
            std::string::npos);
  memory.layers.pop_back();
  EXPECT_THROW(model->logits(random_tokens(2, 8, 37, 12), {.memory = &memory}), InputError);
  ModelMemory none;
  EXPECT_THROW(model->logits(random_tokens(2, 8, 37, 12), {.memory = &none}), InputError);
}

// Row i predicts token i; the first tokens come in pieces, the others one at a time.
at::Tensor piece_by_piece(const TransformerImpl& model, const at::Tensor& text, std::int64_t first_piece,
                          std::vector<std::int64_t>* bytes = nullptr) {
  ModelCache cache = model.make_cache();
  const std::vector<std::int64_t> sequence{cache.add_sequence()};
  const at::Tensor previous = text.roll(1, 1);
  std::vector<at::Tensor> rows;
  for (std::int64_t first = 0; first < text.size(1);) {
    const std::int64_t count = first == 0 ? first_piece : 1;
    rows.push_back(model.logits_cached(previous.narrow(1, first, count), cache, sequence, {}));
    first += count;
    if (bytes != nullptr) bytes->push_back(cache.bytes());
  }
  return at::cat(rows, 1);
}

TEST(ModelMemory, DecodingOneTokenAtATimeEqualsSegmentsBitForBit) {
  const at::NoGradGuard no_gradient;
  for (const auto& [segment, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{{50, 70}, {64, 30}}) {
    std::vector<ContentCase> cases = remembering_cases(segment, length);
    ExperimentConfig ranks = memory_experiment("routing", segment, length);
    ranks.routing.group.relative = RelativePosition::rank;
    cases.push_back({"ranks", ranks});
    for (const ContentCase& each : cases) {
      Transformer model = model_of(each.config);
      const at::Tensor text = random_tokens(1, 430, 37, 13);
      const at::Tensor expected = logits_by_segments(*model, text, {segment, length});
      EXPECT_TRUE(at::equal(piece_by_piece(*model, text, 1), expected)) << each.name << " of " << segment;
      EXPECT_TRUE(at::equal(piece_by_piece(*model, text, 333), expected)) << each.name << " after a long piece";
    }
  }
  // Blocks and cells begin where a memory does. With a flange of six blocks they reach beyond it.
  for (const std::int64_t flange : {1, 6}) {
    ExperimentConfig blocks = memory_experiment("fixed", 60, 80);
    std::get<LocalPattern>(blocks.patterns.local.pattern) = {.form = LocalForm::block, .window = 20, .flange = flange};
    blocks.patterns.fixed.pattern = FixedPattern{.stride = 10, .summary = 3};
    Transformer model = model_of(blocks);
    const at::Tensor text = random_tokens(1, 300, 37, 14);
    EXPECT_TRUE(at::equal(piece_by_piece(*model, text, 1), logits_by_segments(*model, text, {60, 80}))) << flange;
  }
}

TEST(ModelMemory, BlocksAndCellsOfSegmentsAreThoseOfOneLongPass) {
  const at::NoGradGuard no_gradient;
  ExperimentConfig config = memory_experiment("fixed", 64, kText);
  std::get<LocalPattern>(config.patterns.local.pattern) = {.form = LocalForm::block, .window = 32};
  config.patterns.fixed.pattern = FixedPattern{.stride = 16, .summary = 3};
  Transformer model = model_of(config);
  const at::Tensor text = random_tokens(2, kText, 37, 16);
  EXPECT_TRUE(at::equal(logits_by_segments(*model, text, {64, kText}), model->logits(text, {})));
}

TEST(ModelMemory, TheCacheOfFullHeadsStaysBounded) {
  const at::NoGradGuard no_gradient;
  Transformer model = model_of(memory_experiment("full", 50, 70));
  std::vector<std::int64_t> bytes;
  piece_by_piece(*model, random_tokens(1, 1000, 37, 15), 1, &bytes);
  EXPECT_EQ(bytes.back(), bytes[300]);
  EXPECT_EQ(model->make_cache().bytes_per_token(), 0);
}

}  // namespace
}  // namespace routing::model_memory_test
