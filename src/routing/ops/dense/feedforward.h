// The feed-forward layer with a ReLU, differentiable.
//
//   y = dropout(relu(x W_in^T + b_in)) W_out^T + b_out
//
// As calls of linear and dropout would compute it, bit for bit (with bf16, a hidden number so small that it rounds to 0
// passes no gradient), but in pieces of some hundred rows, so that the hidden
// rows and their gradients are multiplied while they are in the processor's cache. For the backward pass x and the
// hidden rows are kept as products read them: with bf16 in two bytes per number. Without a graph nothing is kept.
#pragma once

#include "routing/ops/dropout.h"
#include "routing/ops/precision.h"

#include <ATen/ATen.h>

namespace routing {

struct FeedforwardWeights {
  at::Tensor in;        // [hidden, width]
  at::Tensor in_bias;   // [hidden]
  at::Tensor out;       // [width, hidden]
  at::Tensor out_bias;  // [width]
};

struct FeedforwardOptions {
  MatmulPrecision precision = MatmulPrecision::fp32;
  DropoutDraw dropout = {};  // of hidden rows
};

// input [batch, tokens, width], Float or Double, weights alike -> [batch, tokens, width]. Differentiable once in the
// input and all weights. Throws an InputError if shapes, types or devices do not fit.
at::Tensor relu_feedforward(const at::Tensor& input, const FeedforwardWeights& weights,
                            const FeedforwardOptions& options = {});

}  // namespace routing
