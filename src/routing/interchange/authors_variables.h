// What the authors' TensorFlow code calls the weights of a language model, and which of our tensors they are. Knows no
// torch.
//
// Below the scope of the model's body, sparse_transformer/body/:
//
//   embeddings/embedding                          [vocabulary, embedding]
//   emb_dense/kernel, bias                        the dense layer after it (docs/facts.md C2)
//   decoder_layer_N/self_attention/
//     self_attention/{q,k,v}/kernel               [width, heads * dim], routed heads first
//     self_attention/attention_nd/
//       local_nd/relative_positions_{keys,values}/embeddings                              offsets of local heads
//       cluster_attention/cluster_attention/{means,ema_means,ema_count}                   centroids and their averages
//       cluster_attention/cluster_attention/relative_positions_{keys,values}/embeddings   ranks in a cluster
//       dense/kernel                              [dim, dim], applied to every head (docs/facts.md A12)
//     self_attention/output_transform/kernel      [heads * dim, width]
//     layer_postprocess/layer_norm/layer_norm_{scale,bias}       after attention
//     ffn/conv1, conv2                            ReLU, with biases; GEGLU: ffn/weight1 (gate), weight2, weight3
//     layer_postprocess_1/layer_norm/…            after the feed-forward layer
//   final_dense_1/kernel, bias                    only where the embedding is narrower or wider than the model
//   final_dense_2/kernel, bias                    the output layer
#pragma once

#include "routing/config/experiment.h"
#include "routing/interchange/values/foreign_tensor.h"

#include <string>
#include <vector>

namespace routing {

inline constexpr const char* kAuthorsScope = "sparse_transformer/body/";

// How the numbers of a variable lie in our tensor.
enum class VariableLayout {
  same,         // as they are
  transposed,   // [in, out] -> [out, in]
  head_rows,    // the same, and the heads of the outputs in our order: local ones first
  head_columns  // the same for the heads of the inputs
};

struct AuthorsVariable {
  std::string name = {};       // below the scope
  Dimensions dimensions = {};  // theirs
  std::string tensor = {};     // our name
  VariableLayout layout = VariableLayout::same;
  std::int64_t routed_heads = 0;  // of the layer, for layouts of heads
};

// Every variable of the model. Throws a ConfigError that lists all keys with which the model computes something else
// than the authors' code, and what they would have to be.
std::vector<AuthorsVariable> authors_variables(const ExperimentConfig& config);

// The scope of the head mix of a layer that has none here: it is folded into the output projection, or is the identity.
std::string authors_head_mix(std::int64_t layer);

// What a checkpoint holds beside the model: the optimiser's state, counters, averages of losses. A variable below the
// scope is one if a part of its name begins with Adafactor, Adam or Momentum; above it everything is.
bool is_no_weight(const std::string& name);

}  // namespace routing
