#include "routing/interchange/public_model.h"

#include "interchange/public_oracle.h"
#include "routing/core/error.h"
#include "routing/interchange/foreign_values.h"
#include "routing/model/weights.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cstring>

namespace routing::public_model_test {
namespace {

using State = std::map<std::string, at::Tensor>;

constexpr std::int64_t kTokens = 11, kDim = 12, kHeads = 3, kDimHead = 4, kLength = 24, kWindow = 6, kClusters = 4;

std::string layer(int number) {
  return "routing_transformer.layers.layers." + std::to_string(number) + ".";
}

// A state_dict with random weights, named and shaped as version 1.6.1 does.
State random_state(const std::vector<std::int64_t>& local_heads, bool tied = false) {
  at::manual_seed(11);
  State state;
  const auto add = [&](const std::string& name, const Dimensions& shape, double size) {
    state[name] = at::randn(shape, at::kFloat) * size;
  };
  const auto add_norm = [&](const std::string& name) {
    add(name + "weight", {kDim}, 0.3);
    state[name + "weight"] += 1.0;
    add(name + "bias", {kDim}, 0.3);
  };
  const at::Tensor rates = at::pow(10000.0, -at::arange(0, kDimHead, 2, at::kFloat) / kDimHead);
  const at::Tensor angles = at::outer(at::arange(kLength, at::kFloat), rates);
  state["sinu_pos_emb.emb"] = at::cat({at::sin(angles), at::cos(angles)}, 1);
  add("token_emb.weight", {kTokens, kDim}, 0.02);  // as small as a fresh one: eps shows
  for (int number = 0; number < static_cast<int>(local_heads.size()); ++number) {
    const std::int64_t local = local_heads[static_cast<std::size_t>(number)];
    const std::int64_t routed = kHeads - local;
    const std::string attention = layer(number) + "0.fn.";
    add_norm(layer(number) + "0.norm.");
    if (local > 0) {
      add(attention + "local_to_qkv.weight", {3 * local * kDimHead, kDim}, 0.5);
      add(attention + "local_to_qkv.bias", {3 * local * kDimHead}, 0.5);
      state[attention + "local_attn.rel_pos.inv_freq"] = rates;
    }
    if (routed > 0) {
      add(attention + "global_attn.kmeans.means", {routed, kClusters, kDimHead}, 0.5);
      state[attention + "global_attn.kmeans.initted"] = at::ones({}, at::kBool);
      add(attention + "global_attn.mem_key", {routed, kClusters, 0, kDimHead}, 1.0);
      add(attention + "global_attn.mem_value", {routed, kClusters, 0, kDimHead}, 1.0);
    }
    add(attention + "to_q.weight", {routed * kDimHead, kDim}, 0.5);
    add(attention + "to_v.weight", {routed * kDimHead, kDim}, 0.5);
    add(attention + "to_out.weight", {kDim, kHeads * kDimHead}, 0.3);
    add_norm(layer(number) + "1.norm.");
    add(layer(number) + "1.fn.fn.w1.weight", {4 * kDim, kDim}, 0.4);
    add(layer(number) + "1.fn.fn.w1.bias", {4 * kDim}, 0.4);
    add(layer(number) + "1.fn.fn.w2.weight", {kDim, 4 * kDim}, 0.2);
    add(layer(number) + "1.fn.fn.w2.bias", {kDim}, 0.4);
  }
  add_norm("norm.");
  if (tied) {
    state["out.tensor"] = state["token_emb.weight"];
  } else {
    add("out.weight", {kTokens, kDim}, 0.5);
    add("out.bias", {kTokens}, 0.5);
  }
  return state;
}

std::vector<TorchTensor> archived(const State& state, const std::string& scope = "") {
  std::vector<TorchTensor> tensors;
  for (const auto& [name, tensor] : state) {
    const at::Tensor rows = tensor.contiguous();
    TorchTensor made{.name = scope + name,
                     .type = number_type(rows.scalar_type()),
                     .dimensions = rows.sizes().vec(),
                     .bytes = std::vector<std::byte>(rows.nbytes())};
    if (rows.nbytes() > 0) std::memcpy(made.bytes.data(), rows.data_ptr(), rows.nbytes());
    tensors.push_back(std::move(made));
  }
  return tensors;
}

const GivenArguments kCausal{{"causal", "true"}};

void expect_their_logits(const State& state, GivenArguments given, std::int64_t length = kLength) {
  given.insert({"causal", "True"});
  const PublicModel read = read_public_model(archived(state), given, "file");
  const PublicArguments& arguments = read.arguments;
  const PublicOracle oracle(state, {.depth = arguments.depth,
                                    .heads = kHeads,
                                    .dim_head = kDimHead,
                                    .local_window = arguments.local_window,
                                    .radius = arguments.local_radius,
                                    .window = kWindow,
                                    .relu = arguments.relu});
  const at::Tensor tokens = random_tokens(1, length, kTokens, 5);
  const at::NoGradGuard no_gradient;
  const at::Tensor ours = Transformer(read.model)->logits(tokens, {})[0];
  // Ours reads id 0 before the first token.
  const at::Tensor theirs = oracle.logits(at::cat({at::zeros({1}, at::kLong), tokens[0].slice(0, 0, -1)}));
  EXPECT_LT((ours - theirs).abs().max().item<double>(), 2e-5);
  EXPECT_GT(theirs.std().item<double>(), 0.05);
}

TEST(PublicModel, LocalAndRoutedHeadsHaveTheLogitsOfThePlainOracle) {
  expect_their_logits(random_state({3, 1, 1}), {});
}

TEST(PublicModel, OnlyRoutedHeadsHaveThemToo) {
  expect_their_logits(random_state({0, 0}), {});
  expect_their_logits(random_state({0, 0}), {}, 4);  // fewer tokens than the window of a cluster
}

TEST(PublicModel, OnlyLocalHeadsHaveThemToo) {
  expect_their_logits(random_state({3, 3}), {{"local_attn_window_size", "4"}, {"local_attn_radius_blocks", "2"}});
  State without_positions = random_state({3});
  without_positions.erase(layer(0) + "0.fn.local_attn.rel_pos.inv_freq");
  expect_their_logits(without_positions, {{"window_size", "8"}});
}

TEST(PublicModel, ReluAndTiedOutputsHaveThemToo) {
  expect_their_logits(random_state({1, 3}), {{"ff_activation", "torch.nn.ReLU"}});
  expect_their_logits(random_state({2}, /*tied=*/true), {{"tie_embedding", "True"}});
}

TEST(PublicModel, ALocalModelIsCausalAndARoutedOneReadsTheFuture) {
  EXPECT_EQ(
      validity_label(read_public_model(archived(random_state({3})), {{"causal", "true"}, {"window_size", "6"}}, "file")
                         .model->config()),
      "causal");
  EXPECT_EQ(validity_label(read_public_model(archived(random_state({1})), kCausal, "file").model->config()),
            "selection reads the future");
}

TEST(PublicModel, NamesBelowWrappersAndHalvesAreRead) {
  const State state = random_state({1});
  const PublicModel plain = read_public_model(archived(state), kCausal, "file");
  const PublicModel wrapped = read_public_model(archived(state, "net.net."), kCausal, "file");
  EXPECT_EQ(wrapped.scope, "net.net.");
  const auto expected = named_tensors(*plain.model);
  for (const auto& [name, tensor] : named_tensors(*wrapped.model)) EXPECT_TRUE(at::equal(tensor, expected.at(name)));
  State doubles = state;
  for (auto& [name, tensor] : doubles) {
    if (tensor.is_floating_point()) tensor = tensor.to(at::kDouble);
  }
  const PublicModel wide = read_public_model(archived(doubles), kCausal, "file");
  for (const auto& [name, tensor] : named_tensors(*wide.model)) EXPECT_TRUE(at::equal(tensor, expected.at(name)));
}

TEST(PublicModel, ShapesTellTheArguments) {
  const PublicArguments found = read_public_model(archived(random_state({3, 1})), kCausal, "file").arguments;
  EXPECT_EQ(found.num_tokens, kTokens);
  EXPECT_EQ(found.dim, kDim);
  EXPECT_EQ(found.depth, 2);
  EXPECT_EQ(found.max_seq_len, kLength);
  EXPECT_EQ(found.heads, kHeads);
  EXPECT_EQ(found.dim_head, kDimHead);
  EXPECT_EQ(found.local_heads, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(found.window_size, kWindow);
  EXPECT_EQ(found.local_window, kWindow);
  EXPECT_TRUE(found.rotary_local_heads);
  EXPECT_FALSE(found.tied);
}

TEST(PublicModel, PartsWithoutACounterpartAreRefusedByName) {
  const auto refusal = [](const std::string& name, const Dimensions& shape = {2, 2}) {
    State state = random_state({1});
    state[name] = at::zeros(shape, at::kFloat);
    return message_of<FileError>([&] { read_public_model(archived(state), kCausal, "file"); });
  };
  const std::vector<std::pair<std::string, std::string>> parts{
      {"routing_transformer.layers.blocks.0.f.net.norm.weight", "reversible layers"},
      {"routing_transformer.project_in.weight", "emb_dim"},
      {layer(0) + "0.residual_weight", "ReZero"},
      {layer(0) + "0.norm.g", "ScaleNorm"},
      {layer(0) + "0.fn.fn.to_out.weight", "shift_tokens"},
      {layer(0) + "0.fn.to_k.weight", "shared_qk=False"},
      {layer(0) + "1.fn.to_queries.weight", "pkm_layers"},
      {layer(0) + "1.fn.gate.w_gating", "moe_layers"},
      {layer(0) + "1.fn.experts.w1", "moe_layers"},
      {layer(0) + "0.fn.local_attn.rel_pos.weights", "relative tables per head"},
      {"axial_pos_emb.weights.0", "axial positions"},
      {"pos_emb.emb.weight", "absolute positions"},
      {layer(0) + "0.fn.mystery", "has no counterpart here"}};
  for (const auto& [name, why] : parts) {
    const std::string message = refusal(name);
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }
  EXPECT_NE(refusal(layer(0) + "0.fn.global_attn.mem_key", {2, kClusters, 1, kDimHead}).find("num_mem_kv"),
            std::string::npos);
}

TEST(PublicModel, TensorsThatDoNotFitAreNamed) {
  const auto refusal = [](State state) {
    return message_of<FileError>([&] { read_public_model(archived(state), kCausal, "file"); });
  };
  State state = random_state({1});
  state.erase("norm.weight");
  state[layer(0) + "1.fn.fn.w2.bias"] = at::zeros({5}, at::kFloat);
  const std::string message = refusal(state);
  EXPECT_NE(message.find("tensor 'norm.weight' [12] is missing"), std::string::npos) << message;
  EXPECT_NE(message.find("w2.bias' is [5], but [12] was expected"), std::string::npos) << message;
  state = random_state({1});
  state[layer(0) + "0.fn.global_attn.kmeans.initted"] = at::zeros({}, at::kBool);
  EXPECT_NE(refusal(state).find("has never seen a batch"), std::string::npos);
  state = random_state({1});
  state["sinu_pos_emb.emb"] = state["sinu_pos_emb.emb"] * 1.1;
  EXPECT_NE(refusal(state).find("sinu_pos_emb.emb' differs by"), std::string::npos);
  state = random_state({1});
  state[layer(0) + "1.fn.fn.w1.weight"] = at::zeros({8 * kDim, kDim}, at::kFloat);
  EXPECT_NE(refusal(state).find("ff_glu"), std::string::npos);
  state = random_state({1});
  state["other"] = at::zeros({1}, at::kFloat);
  EXPECT_NE(message_of<FileError>([&] { read_public_model(archived(state, ""), kCausal, "file"); }).find("'other'"),
            std::string::npos);
  EXPECT_NE(refusal({{"weight", at::zeros({1})}}).find("not the state_dict of a RoutingTransformerLM"),
            std::string::npos);
}

}  // namespace
}  // namespace routing::public_model_test
