// What the arguments of the `bench` commands say.
#pragma once

#include "lab/bench/attention_sizes.h"
#include "lab/bench/decode_bench.h"
#include "lab/bench/layers_bench.h"
#include "lab/bench/scaling_bench.h"
#include "lab/measure/runner.h"
#include "routing/config/experiment.h"
#include "routing/ops/precision.h"

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

struct LayersOptions : BenchOptions {
  bench::LayersBench layers;
};

struct ScalingOptions : BenchOptions {
  bench::ScalingBench scaling;
  bench::ClusterSweep sweep;
  bool sweep_clusters = false;
};

struct DecodeOptions : BenchOptions {
  bench::DecodeBench decode;  // its configuration is made of what follows
  std::int64_t layers = 6;
  std::int64_t width = 512;
  std::int64_t heads = 8;
  std::int64_t window = 256;
  std::int64_t clusters = 32;
  std::int64_t vocabulary = 256;
  std::vector<std::string> settings;
};

// Of `bench train`.
struct TrainBenchOptions : BenchOptions {
  std::vector<std::string> contents = {"local", "routing"};
  ExperimentConfig config;
  std::string data;
};

// Of every training; they are not measured.
inline constexpr std::int64_t kSkippedSteps = 2;

struct DistributedOptions {
  std::string preset = "tiny-enwik8";
  std::string data;
  std::vector<std::string> settings;
  int ranks = 2;
  int repeats = 3;
  std::int64_t steps = 12;
  bool json = false;
};

// Of `bench long`.
struct LongOptions {
  std::string preset = "tiny-enwik8";
  std::string data;
  std::vector<std::string> settings;
  std::vector<int> ranks = {1, 2, 4};
  std::vector<std::string> contents = {"local", "routing"};
  std::int64_t from = 8192;  // tokens of a sequence, doubled until more than `to`
  std::int64_t to = 65536;
  std::int64_t fit_from = 16384;
  bool json = false;
};

// --precision, --repeats, --seed and --json.
void add_measuring_options(CLI::App& app, BenchOptions& options);

// What --pattern may name; a test compares with what the engine knows.
const std::vector<std::string>& offered_patterns();
// The words as values; a ConfigError names the nearest.
std::vector<MatmulPrecision> chosen_precisions(const BenchOptions& options);
std::vector<bench::Pass> chosen_passes(const BenchOptions& options);

}  // namespace routing
