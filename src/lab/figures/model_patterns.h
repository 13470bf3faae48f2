// The paper's Figure 1 from a trained model: what its heads really read on a real stretch of text.
#pragma once

#include "lab/figures/pattern_figure.h"
#include "routing/model/sequence_model.h"

#include <cstdint>
#include <optional>
#include <string>

namespace routing {

struct ModelPatternsOptions {
  std::string title = {};
  std::optional<std::int64_t> layer = std::nullopt;  // all unless told
  std::optional<std::int64_t> head = std::nullopt;   // one head of each layer; unless told, the first of each group
  bool all_heads = false;
  MatmulPrecision precision = MatmulPrecision::fp32;
};

// One row per layer, one square per head: the plans of a forward pass over tokens int64 [1, n]. Row i is the prediction
// of token i; column j carries token j - 1, since a model reads its text one place later. Throws a ConfigError for a
// layer or head that the model does not have, or an n outside kShortestGallery … kLongestGallery.
PatternFigure model_patterns(SequenceModel& model, const at::Tensor& tokens, const ModelPatternsOptions& options);

// How many tokens show that windows end: twice the largest window of any head, at most kLongestGallery; 64 if none has
// a window.
std::int64_t usual_pattern_tokens(const ExperimentConfig& config);

// "the last 128 of its clusters": what a query of these heads reads, for the caption of a square.
std::string pattern_caption(const HeadGroupConfig& group);

}  // namespace routing
