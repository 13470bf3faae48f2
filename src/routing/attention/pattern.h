// A pattern makes plans. Patterns that keep something between calls (rotations, later centroids) are modules, so that
// it is moved, saved and loaded with the model.
#pragma once

#include "routing/attention/plan.h"
#include "routing/attention/token_layout.h"
#include "routing/config/attention.h"
#include "routing/core/random.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

namespace routing {

// Where a layer stands in its model; names its random streams. Two attentions of one model must differ in part or
// layer.
struct LayerPlace {
  std::uint64_t seed = 1;
  std::int64_t layer = 0;
  std::string part = "decoder self";  // "encoder self", "decoder cross" …

  // The key of one use of random numbers.
  std::uint64_t key(const std::string& use, std::initializer_list<std::uint64_t> numbers = {}) const {
    return stream_key(stream_key(seed, part, {static_cast<std::uint64_t>(layer)}), use, numbers);
  }
};

// One call's question to a pattern.
struct PlanRequest {
  TokenLayout layout = {};
  at::Tensor queries =
      {};  // [batch, heads, queries, dim], after any normalisation; only content-based patterns look at them
  at::Tensor keys = {};  // [batch, heads, keys, dim]; undefined where keys are the queries
  bool training = false;
  std::uint64_t step = 0;  // counts training forwards; patterns that draw anew do so for each step
};

class Pattern : public torch::nn::Module {
 public:
  virtual Plan plan(const PlanRequest& request) = 0;
};

// What a pattern has to know of its layer.
struct PatternContext {
  AttentionKind kind = AttentionKind::causal_self;
  std::int64_t dim = 0;         // of a head
  std::int64_t first_head = 0;  // number of the group's first head in its layer
  LayerPlace place = {};
  at::TensorOptions options = {};
};

// The pattern of a head group; throws a ConfigError where the pattern does not fit the kind of attention.
std::shared_ptr<Pattern> make_pattern(const HeadGroupConfig& group, const PatternContext& context);

}  // namespace routing
