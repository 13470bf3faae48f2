// Experiments small enough for tests.
#pragma once

#include "routing/config/experiment.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// Two layers of width 16, four heads of which two follow the content pattern, windows of 8, 32 tokens, two sequences.
// Content local2d is of images 5 wide, whose first 32 values are read.
ExperimentConfig small_experiment(const std::string& content = "routing");

// The contents under which attention can be trained: every pattern, and every selection of routing.
struct ContentCase {
  std::string name;
  ExperimentConfig config;
};
std::vector<ContentCase> content_cases();

// Routed heads whose keys are not shifted and whose scale is fixed, as they are in the paper; a token reads itself only
// if it is alone.
void keys_as_they_stand(HeadGroupConfig& group);

// The same with odd sizes, windows of 70 in local heads, and sequences as long as asked for: for caches and pieces,
// whose tiles and lists should end in the middle of things. Windows of other heads are the test's to choose.
ExperimentConfig odd_experiment(const std::string& content, std::int64_t tokens);

// The same with its vocabulary in three bands, for reading and predicting, an eighth and half of it their ends; tied,
// with a start symbol of its own.
ExperimentConfig in_bands(ExperimentConfig config);

// Of the recall task: 20 keys, 4 values, 3 words of filler, 96 tokens.
ExperimentConfig small_recall_experiment();

// An encoder-decoder of one encoder and two decoder layers, otherwise the same; all its parts follow the content where
// it fits them, half of the heads. Sources of 24 tokens, targets of 32.
ExperimentConfig small_pairs_experiment(const std::string& content = "routing");
// Of these, every content, and every selection of routing.
std::vector<ContentCase> pairs_cases();

// Tokens 0 … vocab-1 from a named stream: [batch, n].
at::Tensor random_tokens(std::int64_t batch, std::int64_t n, std::int64_t vocab, std::uint64_t seed);

}  // namespace routing
