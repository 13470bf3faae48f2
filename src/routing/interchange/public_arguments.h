// The arguments with which a RoutingTransformerLM of lucidrains' routing-transformer was made. Knows no torch.
//
// A state_dict holds tensors only. Most arguments follow from their shapes; the others are given by name, as in the
// constructor. What is given and what the shapes say must agree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace routing {

// Names and values as text: "causal" -> "true".
using GivenArguments = std::map<std::string, std::string>;

struct PublicArguments {
  // From the shapes.
  std::int64_t num_tokens = 0, dim = 0, depth = 0, max_seq_len = 0, heads = 0, dim_head = 0, clusters = 0, hidden = 0;
  std::vector<std::int64_t> local_heads = {};  // of each layer
  bool rotary_local_heads = false;
  bool tied = false;
  // Given, or their defaults there.
  std::int64_t window_size = 0;  // max_seq_len / clusters; given where no layer has routed heads
  std::int64_t local_window = 0;
  std::int64_t local_radius = 1;
  bool relu = false;  // ff_activation is ReLU instead of GELU
  double ema_decay = 0.999;
  double commitment = 1e-4;
};

// Fills in what is given. Throws a ConfigError that names every argument that is unknown, contradicts the shapes (with
// both values) or has no counterpart here.
void apply_given_arguments(PublicArguments& arguments, const GivenArguments& given);

// What attention.content_layers says of the layers with routed heads: "all", "2..5", "odd", "even"; empty if there are
// none. Throws a ConfigError if no such word means these layers or their numbers of routed heads differ.
std::string routed_layers(const PublicArguments& arguments);

}  // namespace routing
