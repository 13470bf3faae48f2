// Models of lucidrains' routing-transformer (RoutingTransformerLM, version 1.6) as models of ours: the same function of
// the tokens before, up to rounding in float32.
//
// Two things there have no parameter of their own here and are expressed by others, exactly:
//
//   eps      Their layer norms add 1e-5 to the variance, ours 1e-6. LN(c x; c^2 e) = LN(x; e), so the residual stream
//   is
//            kept c = sqrt(0.1) times as large: embeddings and what each sub-layer adds are scaled by c.
//   biases   Their local heads add a bias b to W x, x = g n + a, with n the normalised vector, whose numbers sum to 0.
//            With a norm of gain 1 and bias 1, x' = n + 1 sums to the width d, and
//            W' = W diag(g) + (W a + b - W g) 1^T / d   gives   W' x' = W x + b.
//
// Their model reads token i to predict token i + 1 and has no start symbol; ours reads id 0 before the first token.
#pragma once

#include "routing/interchange/pickle/torch_archive.h"
#include "routing/interchange/public_arguments.h"
#include "routing/model/transformer.h"

#include <string>
#include <vector>

namespace routing {

struct PublicModel {
  Transformer model = nullptr;  // in evaluation mode
  PublicArguments arguments = {};
  std::string scope = {};                 // what stood before the names, such as "net."
  std::vector<std::string> skipped = {};  // tensors that nothing needs: tables of positions, flags
};

// Throws a FileError that names every tensor without a counterpart and why there is none, and a ConfigError for given
// arguments (public_arguments.h). `where` begins the messages.
PublicModel read_public_model(const std::vector<TorchTensor>& state_dict, const GivenArguments& given,
                              const std::string& where);

}  // namespace routing
