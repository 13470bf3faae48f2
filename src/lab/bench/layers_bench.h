// `bench layers`: every operation of a training step by itself, at the sizes of a model.
#pragma once

#include "lab/bench/attention_sizes.h"
#include "lab/bench/row.h"
#include "routing/ops/precision.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing::bench {

struct LayersBench {
  AttentionSizes attention = {};  // batch, n, heads, dim, window, clusters; the width is heads * dim
  std::int64_t feedforward_width = 2048;
  std::int64_t vocabulary = 256;
  std::string bands = {};  // of the vocabulary, as model.bands; empty means that nothing in bands is measured
  double band_factor = 4.0;
  std::int64_t layers = 6;  // only the optimiser sees all of them
  double dropout = 0.1;
  std::vector<MatmulPrecision> precisions = {MatmulPrecision::fp32, MatmulPrecision::bf16};
  std::uint64_t seed = 1;
  RunnerOptions runner = {};
};

// Rows named after operations: "linear 512x2048" (in x out), "layer_norm", "dropout", "residual" (a sum), "embedding",
// "vocabulary_loss", "attend local", "attend threshold", "plan threshold", "gradient_norm", "adam", "adafactor". Passes
// are forward and backward; the last four have one, named plan or step. A backward pass goes over a graph made
// beforehand.
//
// With bands also "adaptive_softmax" and "adaptive_embedding", of words whose frequency is in proportion to 1 / rank.
//
//   peak    beside inputs and weights, which exist already
//   bytes   tensors read and written once each: inputs, weights, results and their gradients; those of "adafactor" as
//           often as its passes read them
//   ratio   seconds relative to the first linear layer's forward, in the same precision; operations whose time does not
//           depend on it stand under the first precision
std::vector<Row> bench_layers(const LayersBench& bench);

}  // namespace routing::bench
