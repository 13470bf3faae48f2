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

// "--heads", "attention heads": a whole number of at least 1.
void add_size(CLI::App& app, const std::string& name, std::int64_t& value, const std::string& text);
// Words with commas between them; may be repeated. The words given are the default.
void add_word_list(CLI::App& app, const std::string& name, std::vector<std::string>& words, const std::string& text);

// --precision, --repeats, --seed and --json.
void add_measuring_options(CLI::App& app, BenchOptions& options);

// The words as values; a ConfigError names the nearest.
std::vector<MatmulPrecision> chosen_precisions(const BenchOptions& options);
std::vector<bench::Pass> chosen_passes(const BenchOptions& options);

}  // namespace routing
