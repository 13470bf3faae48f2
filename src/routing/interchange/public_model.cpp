#include "routing/interchange/public_model.h"

#include "routing/config/keys.h"
#include "routing/core/error.h"
#include "routing/interchange/foreign_values.h"
#include "routing/interchange/public_state.h"
#include "routing/model/weights.h"

#include <cmath>
#include <map>
#include <utility>

namespace routing {
namespace {

// Both eps are fixed in the two programs.
const double kStreamScale = std::sqrt(1e-6 / 1e-5);

ExperimentConfig config_of(const PublicArguments& arguments) {
  ExperimentConfig config;
  const auto set = [&](const char* key, const std::string& value) { set_key(config, key, value); };
  const auto number = [&](const char* key, std::int64_t value) { set_key(config, key, std::to_string(value)); };
  set("name", "routing-transformer");
  set("source", "converted from lucidrains' routing-transformer");
  number("model.vocab_size", arguments.num_tokens);
  number("model.layers", arguments.depth);
  number("model.width", arguments.dim);
  number("model.head_dim", arguments.dim_head);
  number("model.feedforward_width", arguments.hidden);
  set("model.feedforward", arguments.relu ? "relu" : "gelu");
  set("model.norm", "pre");
  number("attention.heads", arguments.heads);
  number("train.sequence_length", arguments.max_seq_len);
  set("local.form", "block");
  number("local.window", arguments.local_window > 0 ? arguments.local_window : 1);
  number("local.flange", arguments.local_radius);
  set("local.relative", "none");
  set("local.rotary", arguments.rotary_local_heads ? "keys" : "none");
  const std::string routed = routed_layers(arguments);
  if (routed.empty()) {
    set("attention.content", "local");
    number("attention.content_heads", 0);
    return config;
  }
  std::int64_t local = 0;
  for (const std::int64_t heads : arguments.local_heads) {
    if (heads < arguments.heads) local = heads;
  }
  number("attention.content_heads", arguments.heads - local);
  set("attention.content", "routing");
  set("attention.content_layers", routed);
  set(kRoutingPresetKey, "paper");
  number("routing.clusters", arguments.clusters);
  number("routing.window", arguments.window_size);
  set("routing.norm", "unit");
  set("routing.rotary", "values");
  set("routing.scale", "1/sqrt(head_dim)");
  set("routing.self", "only_if_alone_in_group");
  set("routing.merge_eps", "1e-5");
  set("routing.init", "first_batch_kmeans");
  config.routing.routing().decay = arguments.ema_decay;
  config.routing.routing().commitment = arguments.commitment;
  return config;
}

// Their routed heads turn neighbouring numbers as pairs, ours the two halves: even places first, then odd ones.
at::Tensor halves_of_pairs(std::int64_t dim) {
  return at::cat({at::arange(0, dim, 2, at::kLong), at::arange(1, dim, 2, at::kLong)});
}

class Mapping {
 public:
  Mapping(const PublicState& state, const PublicArguments& arguments) : state_(state), arguments_(arguments) {}

  std::map<std::string, at::Tensor> tensors(const std::map<std::string, at::Tensor>& fresh) {
    ours_ = fresh;
    put("embedding", state_.at("token_emb.weight") * kStreamScale);
    for (std::int64_t layer = 0; layer < arguments_.depth; ++layer) add_layer(layer);
    put("last_norm.gain", state_.at("norm.weight"));
    put("last_norm.bias", state_.at("norm.bias"));
    put("output_weight", arguments_.tied ? state_.at("token_emb.weight") : state_.at("out.weight"));
    put("output_bias", arguments_.tied ? at::zeros({arguments_.num_tokens}, at::kDouble) : state_.at("out.bias"));
    return std::move(ours_);
  }

 private:
  // All arithmetic is in double; the result is rounded once.
  void put(const std::string& name, const at::Tensor& value) { ours_.at(name) = value.to(at::kFloat).contiguous(); }

  void add_layer(std::int64_t layer) {
    const std::string theirs = PublicState::layer_scope(layer);
    const std::string ours = "layer" + std::to_string(layer) + ".";
    add_attention(theirs + "0.", ours, layer);
    put(ours + "feedforward_norm.gain", state_.at(theirs + "1.norm.weight"));
    put(ours + "feedforward_norm.bias", state_.at(theirs + "1.norm.bias"));
    put(ours + "feedforward.in_weight", state_.at(theirs + "1.fn.fn.w1.weight"));
    put(ours + "feedforward.in_bias", state_.at(theirs + "1.fn.fn.w1.bias"));
    put(ours + "feedforward.out_weight", state_.at(theirs + "1.fn.fn.w2.weight") * kStreamScale);
    put(ours + "feedforward.out_bias", state_.at(theirs + "1.fn.fn.w2.bias") * kStreamScale);
  }

  void add_attention(const std::string& theirs, const std::string& ours, std::int64_t layer) {
    const std::int64_t local = arguments_.local_heads[static_cast<std::size_t>(layer)];
    const std::int64_t routed = arguments_.heads - local;
    const std::int64_t dim = arguments_.dim_head;
    const at::Tensor gain = state_.at(theirs + "norm.weight");
    const at::Tensor shift = state_.at(theirs + "norm.bias");
    std::vector<at::Tensor> queries, keys, values, outputs;
    if (local > 0) {
      const auto weights = state_.at(theirs + "fn.local_to_qkv.weight").chunk(3);
      const auto biases = state_.at(theirs + "fn.local_to_qkv.bias").chunk(3);
      const auto with_bias = [&](std::size_t part) {
        const at::Tensor& weight = weights[part];
        const at::Tensor constant = at::mv(weight, shift) + biases[part] - at::mv(weight, gain);
        return weight * gain + constant.unsqueeze(1) / static_cast<double>(arguments_.dim);
      };
      queries.push_back(with_bias(0));
      keys.push_back(with_bias(1));
      values.push_back(with_bias(2));
    }
    const at::Tensor output = state_.at(theirs + "fn.to_out.weight").view({arguments_.dim, arguments_.heads, dim});
    outputs.push_back(output.narrow(1, 0, local));
    if (routed > 0) {
      const at::Tensor order = halves_of_pairs(dim);
      const auto projection = [&](const char* name) {
        const at::Tensor weight = state_.at(theirs + "fn." + name + ".weight");
        at::Tensor rows = weight.view({routed, dim, arguments_.dim}).index_select(1, order).flatten(0, 1);
        if (local == 0) return rows;
        const at::Tensor constant = at::mv(rows, shift) - at::mv(rows, gain);
        return rows * gain + constant.unsqueeze(1) / static_cast<double>(arguments_.dim);
      };
      queries.push_back(projection("to_q"));
      values.push_back(projection("to_v"));
      outputs.push_back(output.narrow(1, local, routed).index_select(2, order));
      add_centroids(theirs, ours + "attention.group" + (local > 0 ? "1" : "0") + ".centroids.", order);
    }
    // The norm of a layer whose heads have no biases stays as it is.
    put(ours + "attention_norm.gain", local > 0 ? at::ones_like(gain) : gain);
    put(ours + "attention_norm.bias", local > 0 ? at::ones_like(shift) : shift);
    put(ours + "attention.query_weight", at::cat(queries));
    if (local > 0) put(ours + "attention.key_weight", at::cat(keys));
    put(ours + "attention.value_weight", at::cat(values));
    put(ours + "attention.output_weight", at::cat(outputs, 1).flatten(1) * kStreamScale);
  }

  void add_centroids(const std::string& theirs, const std::string& ours, const at::Tensor& order) {
    const at::Tensor means = state_.at(theirs + "fn.global_attn.kmeans.means").index_select(2, order);
    put(ours + "centroids", means);
    put(ours + "sums", means);
    put(ours + "counts", at::ones({means.size(0), means.size(1)}, at::kDouble));
    ours_.at(ours + "updates") = at::ones({}, at::kLong);  // no first batch will replace them
  }

  const PublicState& state_;
  const PublicArguments& arguments_;
  std::map<std::string, at::Tensor> ours_;
};

}  // namespace

PublicModel read_public_model(const std::vector<TorchTensor>& state_dict, const GivenArguments& given,
                              const std::string& where) {
  const PublicState state(state_dict, where);
  PublicModel read{.arguments = state.arguments(), .scope = state.scope(), .skipped = state.skipped()};
  apply_given_arguments(read.arguments, given);
  const ExperimentConfig config = config_of(read.arguments);
  validate(config);
  read.model = Transformer(config, at::TensorOptions().dtype(at::kFloat));
  load_tensors(*read.model, Mapping(state, read.arguments).tensors(named_tensors(*read.model)), where);
  read.model->eval();
  return read;
}

}  // namespace routing
