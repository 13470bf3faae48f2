// A softmax over a large vocabulary in bands, most frequent words first (Grave et al. 2017, Baevski & Auli 2019).
//
//   the first band   softmax over its words and one symbol for each further band, which reads h itself
//   band b           softmax over its words, which reads the narrower P_b h
//
//   log p(w) = log p_0(w)                                     w in the first band
//   log p(w) = log p_0(symbol of b) + log p_b(w)              w in band b
//
// The loss computes a band's words only for the rows whose target is among them, by vocabulary_loss: no row of logits
// is ever held for all. On the CPU in float32 a row's loss and gradient depend on its row alone, bit for bit, and
// gradients of tables and projections are summed in the order of rows, whatever the number of threads.
#pragma once

#include "routing/ops/dense/vocabulary_loss.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

namespace routing {

struct SoftmaxBand {
  // [words, width of the band]. Of the first band: of its words and then of the symbols of the bands that follow.
  at::Tensor table = {};
  at::Tensor bias = {};        // [rows of the table], or undefined
  at::Tensor projection = {};  // P_b [width of the band, width of h]; undefined in the first band
};

// hidden [rows, width], targets int64 [rows] -> [rows], the nats of the targets. A target of -1 is not counted, as in
// vocabulary_loss; with one band this is vocabulary_loss. Differentiable once in hidden and all that bands hold; a band
// without targets has gradients of zeros. Throws an InputError if shapes or types do not fit or a target is of no band.
at::Tensor adaptive_softmax_loss(const at::Tensor& hidden, std::span<const SoftmaxBand> bands,
                                 const at::Tensor& targets, const VocabularyLossOptions& options = {});

// hidden [..., width] -> [..., all words]: the logarithm of every word's probability, for the few rows that are asked
// for. Differentiable once. A row depends on its row alone, bit for bit.
at::Tensor adaptive_log_probabilities(const at::Tensor& hidden, std::span<const SoftmaxBand> bands,
                                      MatmulPrecision precision = MatmulPrecision::fp32);

}  // namespace routing
