// Cross-entropy over a vocabulary, without ever holding all logits.
//
//   logits = h W^T + b        loss = log of the sum of exp(logits) - logits[target], in nats
//
// Rows are taken in chunks, and within a chunk the vocabulary in panels of 1024; backward computes logits again from
// the log-sum-exp of each row. On the CPU in float32 a row's loss and gradient depend on its row alone, bit for bit,
// and the gradients of W and b are summed chunk after chunk, whatever the number of threads.
#pragma once

#include "routing/ops/dense/linear.h"

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

struct VocabularyLossOptions {
  MatmulPrecision precision = MatmulPrecision::fp32;
  std::int64_t chunk_rows = 2048;  // at least 1; a chunk holds 4 KB of logits per row
};

// hidden [rows, width], weight [vocabulary, width], bias [vocabulary] or undefined, targets int64 [rows] -> [rows].
// A target of -1 is not counted: its loss is 0 and its row has no gradient. Differentiable once in hidden, weight and
// bias; float or double. Throws an InputError if shapes, types or devices do not fit, or a target is not in the
// vocabulary.
at::Tensor vocabulary_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& targets, const VocabularyLossOptions& options = {});

}  // namespace routing
