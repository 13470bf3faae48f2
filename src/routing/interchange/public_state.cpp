#include "routing/interchange/public_state.h"

#include "routing/core/error.h"
#include "routing/interchange/foreign_values.h"

#include <array>
#include <cmath>
#include <fmt/core.h>
#include <string_view>

namespace routing {
namespace {

constexpr std::string_view kEmbedding = "token_emb.weight";

// Parts that compute something that no part of ours does, by what their tensors are called.
struct Part {
  const char* in_name;
  const char* why;
};
constexpr std::array kParts{
    Part{"layers.blocks.", "reversible layers (reversible=True) keep two streams"},
    Part{"project_in.", "embeddings of another width than the model's (emb_dim)"},
    Part{".residual_weight", "ReZero (use_rezero) in the place of layer norms"},
    Part{".norm.g", "ScaleNorm (use_scale_norm) in the place of layer norms"},
    Part{".fn.fn.to_out.", "shifted tokens (shift_tokens)"},
    Part{".fn.to_k.", "routed heads with keys of their own (shared_qk=False), and the memory keys they need"},
    Part{".to_queries.", "product-key memory (pkm_layers)"},
    Part{".fn.fn.keys", "product-key memory (pkm_layers)"},
    Part{".fn.gate.", "a mixture of experts (moe_layers)"},
    Part{".experts.", "a mixture of experts (moe_layers)"},
    Part{".rel_pos.weights", "relative tables per head (local-attention before 1.4)"},
    Part{"axial_pos_emb.", "axial positions (versions before 1.5)"},
    Part{"pos_emb.weights", "axial positions (versions before 1.5)"},
    Part{"pos_emb.emb.weight", "learned absolute positions (versions before 1.5)"},
    Part{"conv", "convolved queries (version 1.5)"},
};

std::string scope_in(const std::vector<TorchTensor>& state_dict, const std::string& where) {
  std::string scope;
  bool found = false;
  for (const TorchTensor& tensor : state_dict) {
    if (!tensor.name.ends_with(kEmbedding)) continue;
    require<FileError>(!found, where, ": has two tensors named …", kEmbedding,
                       ", so it is not one RoutingTransformerLM; an encoder-decoder has no counterpart here");
    scope = tensor.name.substr(0, tensor.name.size() - kEmbedding.size());
    found = true;
  }
  require<FileError>(found, where, ": has no tensor named …", kEmbedding,
                     ", so it is not the state_dict of a RoutingTransformerLM");
  return scope;
}

}  // namespace

std::string PublicState::layer_scope(std::int64_t layer) {
  return "routing_transformer.layers.layers." + std::to_string(layer) + ".";
}

PublicState::PublicState(const std::vector<TorchTensor>& state_dict, const std::string& where)
    : where_(where), scope_(scope_in(state_dict, where)) {
  for (const TorchTensor& tensor : state_dict) {
    require<FileError>(tensor.name.starts_with(scope_), where, ": tensor '", tensor.name, "' stands beside '", scope_,
                       kEmbedding, "'; give the state_dict of the RoutingTransformerLM alone");
    tensors_[tensor.name.substr(scope_.size())] = &tensor;
  }
  refuse_parts_without_counterpart();
  find_sizes();
  check_names_and_shapes();
  throw_complaints();
  check_positions();
  throw_complaints();
}

void PublicState::complain(const std::string& text) {
  complaints_ += (complaints_.empty() ? "" : "; ") + text;
}

void PublicState::throw_complaints() const {
  require<FileError>(complaints_.empty(), where_, ": ", complaints_);
}

void PublicState::refuse_parts_without_counterpart() {
  std::map<std::string, std::string> by_reason;
  for (const auto& [name, tensor] : tensors_) {
    for (const Part& part : kParts) {
      if (name.find(part.in_name) == std::string::npos || *count_of(tensor->dimensions) == 0) continue;
      by_reason.emplace(part.why, name);
      break;
    }
    const bool memory = name.ends_with(".mem_key") && *count_of(tensor->dimensions) > 0;
    if (memory) by_reason.emplace("memory keys and values (num_mem_kv)", name);
  }
  for (const auto& [why, name] : by_reason) {
    complain(fmt::format("'{}' belongs to a part without a counterpart here: {}", name, why));
  }
  throw_complaints();
}

std::int64_t PublicState::size(const std::string& name, std::size_t axis) const {
  if (!has(name) || raw(name).dimensions.size() <= axis) return 0;
  return raw(name).dimensions[axis];
}

void PublicState::find_sizes() {
  arguments_.num_tokens = size(std::string(kEmbedding), 0);
  arguments_.dim = size(std::string(kEmbedding), 1);
  arguments_.max_seq_len = size("sinu_pos_emb.emb", 0);
  arguments_.dim_head = size("sinu_pos_emb.emb", 1);
  arguments_.tied = has("out.tensor");
  while (has(layer_scope(arguments_.depth) + "0.norm.weight")) ++arguments_.depth;
  require<FileError>(arguments_.depth > 0, where_, ": has no ", layer_scope(0),
                     "0.norm.weight, so it is not a RoutingTransformerLM of version 1.6");
  require<FileError>(arguments_.dim_head > 0, where_,
                     ": has no sinu_pos_emb.emb, so it is of a version before 1.5, which has other positions");
  arguments_.heads = size(layer_scope(0) + "0.fn.to_out.weight", 1) / arguments_.dim_head;
  arguments_.hidden = size(layer_scope(0) + "1.fn.fn.w2.weight", 1);
  for (std::int64_t layer = 0; layer < arguments_.depth; ++layer) find_layer_sizes(layer);
}

void PublicState::find_layer_sizes(std::int64_t layer) {
  const std::string scope = layer_scope(layer) + "0.fn.";
  arguments_.local_heads.push_back(size(scope + "local_to_qkv.weight", 0) / (3 * arguments_.dim_head));
  const std::int64_t clusters = size(scope + "global_attn.kmeans.means", 1);
  if (clusters > 0 && arguments_.clusters == 0) arguments_.clusters = clusters;
  if (has(scope + "local_attn.rel_pos.inv_freq")) arguments_.rotary_local_heads = true;
}

void PublicState::expect(const std::string& name, const Dimensions& dimensions) {
  expected_.insert(name);
  if (!has(name)) {
    complain("tensor '" + scope_ + name + "' " + dimensions_text(dimensions) + " is missing");
  } else if (raw(name).dimensions != dimensions) {
    complain("tensor '" + scope_ + name + "' is " + dimensions_text(raw(name).dimensions) + ", but " +
             dimensions_text(dimensions) + " was expected");
  }
}

void PublicState::check_layer(std::int64_t layer) {
  const std::string scope = layer_scope(layer);
  const std::string attention = scope + "0.fn.";
  const std::int64_t dim = arguments_.dim;
  const std::int64_t local = arguments_.local_heads[static_cast<std::size_t>(layer)];
  const std::int64_t routed = arguments_.heads - local;
  const std::int64_t dim_head = arguments_.dim_head;
  for (const char* norm : {"0.norm.", "1.norm."}) {
    expect(scope + norm + "weight", {dim});
    expect(scope + norm + "bias", {dim});
  }
  if (local > 0) {
    expect(attention + "local_to_qkv.weight", {3 * local * dim_head, dim});
    expect(attention + "local_to_qkv.bias", {3 * local * dim_head});
    if (arguments_.rotary_local_heads) expect(attention + "local_attn.rel_pos.inv_freq", {dim_head / 2});
  }
  expect(attention + "to_q.weight", {routed * dim_head, dim});
  expect(attention + "to_v.weight", {routed * dim_head, dim});
  if (has(attention + "to_k.weight")) expect(attention + "to_k.weight", {0, dim});
  expect(attention + "to_out.weight", {dim, arguments_.heads * dim_head});
  if (routed > 0) {
    const std::string global = attention + "global_attn.";
    expect(global + "kmeans.means", {routed, arguments_.clusters, dim_head});
    expect(global + "kmeans.initted", {});
    expect(global + "mem_key", {routed, arguments_.clusters, 0, dim_head});
    expect(global + "mem_value", {routed, arguments_.clusters, 0, dim_head});
    check_initted(global + "kmeans.initted");
  }
  if (size(scope + "1.fn.fn.w1.weight", 0) == 2 * arguments_.hidden) {
    complain("'" + scope_ + scope + "1.fn.fn.w1.weight' has twice the " + std::to_string(arguments_.hidden) +
             " rows that w2 reads: gated feed-forward layers with biases (ff_glu) have no counterpart here");
    expected_.insert({scope + "1.fn.fn.w1.weight", scope + "1.fn.fn.w1.bias"});
  } else {
    expect(scope + "1.fn.fn.w1.weight", {arguments_.hidden, dim});
    expect(scope + "1.fn.fn.w1.bias", {arguments_.hidden});
  }
  expect(scope + "1.fn.fn.w2.weight", {dim, arguments_.hidden});
  expect(scope + "1.fn.fn.w2.bias", {dim});
}

void PublicState::check_initted(const std::string& name) {
  if (!has(name)) return;
  skipped_.push_back(name);
  const bool initted = !raw(name).bytes.empty() && raw(name).bytes.front() != std::byte{0};
  if (!initted) {
    complain("'" + scope_ + name +
             "' is False: the model has never seen a batch, and its centroids would be replaced by "
             "those of the first one");
  }
}

void PublicState::check_names_and_shapes() {
  expect(std::string(kEmbedding), {arguments_.num_tokens, arguments_.dim});
  expect("sinu_pos_emb.emb", {arguments_.max_seq_len, arguments_.dim_head});
  for (std::int64_t layer = 0; layer < arguments_.depth; ++layer) check_layer(layer);
  expect("norm.weight", {arguments_.dim});
  expect("norm.bias", {arguments_.dim});
  if (arguments_.tied) {
    expect("out.tensor", {arguments_.num_tokens, arguments_.dim});
  } else {
    expect("out.weight", {arguments_.num_tokens, arguments_.dim});
    expect("out.bias", {arguments_.num_tokens});
  }
  for (const auto& [name, tensor] : tensors_) {
    if (expected_.count(name) == 1) continue;
    complain("tensor '" + scope_ + name + "' " + dimensions_text(tensor->dimensions) + " has no counterpart here");
  }
  if (arguments_.clusters > 0 && arguments_.max_seq_len % arguments_.clusters != 0) {
    complain("max_seq_len " + std::to_string(arguments_.max_seq_len) + " is not a multiple of the " +
             std::to_string(arguments_.clusters) + " clusters");
  }
  if (arguments_.dim_head % 2 != 0) complain("heads have an odd number of dimensions");
}

// Tables that are written down must hold what we compute: sines and cosines of position * 10000^(-2 j / dim_head).
void PublicState::check_positions() {
  const std::int64_t half = arguments_.dim_head / 2;
  const at::Tensor rates = at::pow(10000.0, -at::arange(half, at::kDouble) / static_cast<double>(half));
  const at::Tensor angles = at::outer(at::arange(arguments_.max_seq_len, at::kDouble), rates);
  // Their angles are rounded to float.
  const double tolerance = 1e-3 + 1e-6 * static_cast<double>(arguments_.max_seq_len);
  const auto check = [&](const std::string& name, const at::Tensor& expected, double allowed) {
    skipped_.push_back(name);
    const auto error = (at(name) - expected).abs().max().item<double>();
    if (!(error <= allowed)) {
      complain("'" + scope_ + name + "' differs by " + std::to_string(error) +
               " from 10000^(-2 j / dim_head) as the "
               "rates of positions; other positions have no counterpart here");
    }
  };
  check("sinu_pos_emb.emb", at::cat({at::sin(angles), at::cos(angles)}, 1), tolerance);
  for (std::int64_t layer = 0; layer < arguments_.depth; ++layer) {
    const std::string name = layer_scope(layer) + "0.fn.local_attn.rel_pos.inv_freq";
    if (has(name)) check(name, rates, 1e-6);
  }
}

at::Tensor PublicState::at(const std::string& name) const {
  const TorchTensor& tensor = raw(name);
  return tensor_from(tensor.bytes, tensor.type, tensor.dimensions).to(at::kDouble);
}

}  // namespace routing
