// The state_dict of a RoutingTransformerLM, checked tensor by tensor.
//
//   token_emb.weight                                                  [vocabulary, dim]
//   routing_transformer.layers.layers.N.0.norm.{weight,bias}          before attention
//   routing_transformer.layers.layers.N.0.fn.
//     local_to_qkv.{weight,bias}                                      of local heads: queries, keys, values
//     local_attn.rel_pos.inv_freq                                     local heads are rotary
//     to_q.weight, to_v.weight                                        of routed heads; keys are queries
//     global_attn.kmeans.{means,initted}, global_attn.mem_{key,value} the latter empty
//     to_out.weight                                                   [dim, heads * dim_head], local heads first
//   routing_transformer.layers.layers.N.1.norm, N.1.fn.fn.{w1,w2}     the feed-forward layer
//   norm.{weight,bias}, out.{weight,bias}                             out.tensor where the output is tied
//   sinu_pos_emb.emb                                                  sines and cosines of max_seq_len positions
#pragma once

#include "routing/interchange/pickle/torch_archive.h"
#include "routing/interchange/public_arguments.h"

#include <ATen/ATen.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace routing {

class PublicState {
 public:
  // Throws a FileError that names every tensor that is missing, of another shape, or without a counterpart.
  PublicState(const std::vector<TorchTensor>& state_dict, const std::string& where);

  static std::string layer_scope(std::int64_t layer);

  // What the shapes say.
  const PublicArguments& arguments() const { return arguments_; }
  const std::string& scope() const { return scope_; }
  const std::vector<std::string>& skipped() const { return skipped_; }
  // In double, below the scope.
  at::Tensor at(const std::string& name) const;

 private:
  bool has(const std::string& name) const { return tensors_.count(name) == 1; }
  const TorchTensor& raw(const std::string& name) const { return *tensors_.at(name); }
  std::int64_t size(const std::string& name, std::size_t axis) const;
  void refuse_parts_without_counterpart();
  void find_sizes();
  void find_layer_sizes(std::int64_t layer);
  void check_names_and_shapes();
  void check_layer(std::int64_t layer);
  void check_positions();
  void check_initted(const std::string& name);
  void expect(const std::string& name, const Dimensions& dimensions);
  void complain(const std::string& text);
  void throw_complaints() const;

  std::string where_, scope_;
  std::map<std::string, const TorchTensor*> tensors_;  // below the scope
  std::set<std::string> expected_;
  std::vector<std::string> skipped_;
  PublicArguments arguments_;
  std::string complaints_;
};

}  // namespace routing
