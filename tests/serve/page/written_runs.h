// Runs whose files are written by hand.
#pragma once

#include "routing/config/experiment.h"
#include "routing/training/run_directory.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace routing {

class WrittenRuns : public testing::Test {
 protected:
  using Json = nlohmann::ordered_json;

  static ExperimentConfig config() {
    ExperimentConfig config;
    config.name = "written";
    config.data.path = "/somewhere/text";
    config.train.steps = 40;
    return config;
  }
  void make_run(const std::string& name, const std::string& metrics = "") const {
    RunDirectory(folder_ / name).create(config());
    if (!metrics.empty()) append(name + "/metrics.jsonl", metrics);
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  void append(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::app) << text;
  }
  static std::string training_line(std::int64_t step, double loss) {
    return Json{{"step", step},
                {"train_loss_nats", loss},
                {"train_bits_per_byte", loss},
                {"tokens", 100 * step},
                {"seconds", static_cast<double>(step)},
                {"validity", "causal"}}
               .dump() +
           "\n";
  }
  static std::string evaluation_line(std::int64_t step, double loss) {
    return Json{{"step", step},      {"eval_loss_nats", loss}, {"eval_bits_per_byte", loss}, {"eval_split", "valid"},
                {"eval_tokens", 64}, {"best", true},           {"validity", "causal"}}
               .dump() +
           "\n";
  }
  // Two heads: one with these shares and one dead cluster, one with a single cluster and two.
  static std::string clusters_line(std::int64_t step, const std::vector<double>& shares) {
    const Json first{{"attention", "layer 1"}, {"head", 2}, {"shares", shares}, {"dead", 1}};
    const Json second{{"attention", "layer 1"}, {"head", 3}, {"shares", {1.0}}, {"dead", 2}};
    return Json{{"step", step}, {"heads", {first, second}}}.dump() + "\n";
  }

  TemporaryFolder folder_;
};

}  // namespace routing
