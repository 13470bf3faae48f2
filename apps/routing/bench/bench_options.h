// Options that several of the `bench` commands share.
#pragma once

#include "lab/bench/attention_work.h"
#include "lab/measure/runner.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

struct BenchOptions {
  bench::AttentionSizes sizes = {};
  std::vector<std::string> patterns;
  std::vector<std::string> precisions = {"fp32", "bf16"};
  std::vector<std::string> passes;
  std::uint64_t seed = 1;
  int repeats = bench::kDefaultRepeats;
  bool json = false;
};

// --precision, --repeats, --seed and --json.
void add_measuring_options(CLI::App& app, BenchOptions& options);

// The words as values; a ConfigError names the nearest.
std::vector<MatmulPrecision> chosen_precisions(const BenchOptions& options);
std::vector<bench::Pass> chosen_passes(const BenchOptions& options);

}  // namespace routing
