// `bench train`: whole training steps of models that differ in what their heads read.
#pragma once

#include "lab/bench/row.h"
#include "routing/config/experiment.h"
#include "routing/model/sequence_model.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing::bench {

struct TrainBench {
  // Sizes and everything else; attention.content and train.precision are set for each case.
  ExperimentConfig config = {};
  std::vector<std::string> contents = {"local", "routing"};  // of attention.content
  std::vector<std::string> precisions = {"fp32", "bf16"};    // of train.precision
  std::filesystem::path data = {};                           // its first bytes; empty means random bytes
  RunnerOptions runner = {};
};

// Floating-point operations of a training step that do not depend on the plan: three products of every weight matrix
// with all tokens (output, gradient of the input, gradient of the weight). Tables that are only looked up count
// nothing; what is computed again in the backward pass counts once.
double dense_step_flops(const SequenceModel& model, std::int64_t tokens);

// The same for attention: forward and backward over the pairs of the model's last plans.
struct PlanCost {
  std::int64_t pairs = 0;
  double flops = 0.0;
};
PlanCost attention_step_cost(const SequenceModel& model);

// A row for each content and precision; pass is "step": forward, backward, clipping, Adam, centroids. `pairs` are those
// of all layers in the last step before timing begins; gflops counts dense layers and attended pairs.
//
//   ratio   seconds relative to the first content in the same precision
//
// Throws  ConfigError  a configuration that cannot be
//         FileError    data that cannot be read
//         InputError   fewer bytes of data than a batch takes
std::vector<Row> bench_train(const TrainBench& bench);

}  // namespace routing::bench
