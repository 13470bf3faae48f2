// Experiments small enough for tests.
#pragma once

#include "routing/config/experiment.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// Two layers of width 16, four heads of which two follow the content pattern, windows of 8, 32 tokens, two sequences.
ExperimentConfig small_experiment(const std::string& content = "routing");

// The contents under which attention can be trained: every pattern, and every selection of routing.
struct ContentCase {
  std::string name;
  ExperimentConfig config;
};
std::vector<ContentCase> content_cases();

// Tokens 0 … vocab-1 from a named stream: [batch, n].
at::Tensor random_tokens(std::int64_t batch, std::int64_t n, std::int64_t vocab, std::uint64_t seed);

}  // namespace routing
