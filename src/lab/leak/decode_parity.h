// Does a model say the same token by token as in one pass?
//
// A sequence is read twice: by the decoder that generates text (generation/decoder.h), one token at a time from the
// start and once more after a prompt that is read at once, and by one pass over all of it. The rows must be equal bit
// for bit. Then what is generated comes from the very model whose likelihood was measured.
#pragma once

#include "routing/model/sequence_model.h"
#include "routing/ops/precision.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>

namespace routing {

struct DecodeParityOptions {
  MatmulPrecision precision = MatmulPrecision::fp32;
  std::int64_t positions = 256;  // at most so many; half from the start, half after the prompt, at the end
  at::Tensor source = {};        // int64 [n]: what an encoder-decoder reads; its targets have no prompt
};

struct DecodeParity {
  std::int64_t positions = 0;      // compared; 0 if there is no cache
  std::int64_t prompt_tokens = 0;  // read at once before the second half of them
  std::int64_t rows_changed = 0;   // with other bits
  double largest = 0.0;            // largest absolute difference of a logit; infinity if one is NaN
  std::string reason = {};         // why there is no cache; empty if there is one

  bool exact() const { return positions > 0 && rows_changed == 0; }
};

// tokens int64 [n], at least one. Puts the model into evaluation mode.
DecodeParity decode_parity(const std::shared_ptr<SequenceModel>& model, const at::Tensor& tokens,
                           const DecodeParityOptions& options = {});

}  // namespace routing
