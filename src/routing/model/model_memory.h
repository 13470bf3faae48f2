// What a model remembers of texts that it reads segment by segment (Dai et al. 2019, Transformer-XL).
//
//   past of a layer = compressed tokens (compression.h), then the inputs that it had for the last `length` tokens of
//                     the text, without a graph
//   input of the first token of a segment = the last token of the segment before
//
// Keys and values of remembered tokens are projected anew with the weights of the day. A forward pass reads the memory
// and moves it on (ForwardContext::memory); what it held before stays as it was for whoever kept a copy, because no
// tensor is ever written to.
#pragma once

#include "routing/config/experiment.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace routing {

struct ModelMemory {
  std::int64_t length = 0;              // tokens that a layer remembers at most
  std::vector<at::Tensor> layers = {};  // [streams, remembered, width] each; empty before the first segment
  // [streams, places, width] each: older tokens, compressed; empty where nothing is.
  std::vector<at::Tensor> compressed = {};
  at::Tensor last_tokens = {};  // int64 [streams]; undefined before the first segment

  // What the layer reads before its segment; undefined if nothing.
  at::Tensor past(std::size_t layer) const;
  // The layer's next memory, after a segment of these inputs [streams, tokens, width].
  struct Next {
    at::Tensor rows = {};
    at::Tensor leaving = {};  // what is to be compressed, in its order; undefined if nothing
  };
  // With a rate tokens leave in groups of so many; at 0 they are forgotten.
  Next moved_on(std::size_t layer, const at::Tensor& inputs, std::int64_t rate) const;
  // An InputError where this is not the memory of so many streams of a model of this configuration.
  void check(const ExperimentConfig& config, std::int64_t streams) const;

  // All that was read so far, by name, for checkpoints; and back from some of it. Nothing before the first segment.
  std::map<std::string, at::Tensor> tensors() const;
  void set_tensors(const std::map<std::string, at::Tensor>& tensors);
  std::int64_t bytes() const;
};

}  // namespace routing
