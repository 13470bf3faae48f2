// How much memory will training take? Worked out from the configuration, before anything is allocated.
//
// A step holds at once
//   weights, moments of the optimiser, packed copies of the weights for products, plans of all layers
//   what the forward pass keeps for the backward pass (activations), which goes as gradients of weights come
//   the largest intermediate results of the backward pass, and blocks that wait to be used again (workspace)
//
// The backward pass frees a layer's activations and makes its gradients, so that the peak is at one of its ends:
//   total = weights + optimizer + packed_weights + plans + workspace + max(activations + output_gradients, gradients)
// and with train.accumulation > 1, where gradients live through the next forward pass, activations + gradients.
//
// Within 15 % of what `routing bench train` measures for small models (docs/presets.md). The process itself, libtorch
// above all, comes on top: kProcessBytes.
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>

namespace routing {

struct MemoryEstimate {  // in bytes
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t output_gradients = 0;  // those of the output layer, which come first
  std::int64_t optimizer = 0;         // Adam: two numbers per weight; Adafactor: one per row and one per column
  std::int64_t packed_weights = 0;
  std::int64_t plans = 0;
  std::int64_t activations = 0;
  std::int64_t workspace = 0;
  bool accumulates = false;
  std::int64_t layer_bytes_a_token = 0;  // of activations and plans, mean over the layers, were all of them kept

  std::int64_t total() const;
};

// Code and tables of the libraries, threads, generated kernels: what a process takes that trains a model of almost
// nothing. Measured with libtorch 1.13 and two threads.
inline constexpr std::int64_t kProcessBytes = 190'000'000;

// Of train.batch_size sequences of train.sequence_length tokens; with train.sequence_ranks of the last rank of those
// that share them, which has its piece and rows of all earlier ones. Where model.vocab_size is 0, that of the data, it
// counts as data.vocabulary_size, and for words as the 267,735 of WikiText-103. A ConfigError for an encoder-decoder.
MemoryEstimate estimate_training_memory(const ExperimentConfig& config);

}  // namespace routing
