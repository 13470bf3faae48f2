// The leak of finished trainings: from model files to measured runs.
#pragma once

#include "lab/leak/leak_report.h"
#include "routing/data/dataset.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace routing {

struct LeakJob {
  std::vector<std::filesystem::path> models = {};  // model.safetensors of each
  std::string part = "test";
  std::int64_t windows = 64;
  std::int64_t positions = 24;
  std::uint64_t seed = 1;  // of the sampled places
  std::int64_t checks = 8;
  bool check_all = false;
  std::optional<MatmulPrecision> precision = std::nullopt;  // absent: as each was trained
  // After each pass.
  std::function<void(const std::string& model, std::int64_t passes_done, std::int64_t passes)> progress = {};
};

// Measures each model at the same places of one part of the data, in windows of the length they were trained with.
//
// Throws  ConfigError  models that were not trained alike: another model section, sequence length or number of steps,
// or
//                      other tokens than those of the data
//         FileError    a file that is not a decoder-only model
std::vector<LeakRun> measure_leak_of_models(const LeakJob& job, const Dataset& data);

}  // namespace routing
