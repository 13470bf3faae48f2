// The options by which commands receive a trained model and data for it.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace routing {

struct RunDataOptions {
  std::string run = {};
  std::string checkpoint = "best";
  std::string data = {};
  std::string vocabulary = {};
  std::string split = "valid";
  std::int64_t offset = 0;
  std::string precision = {};
};

// --checkpoint, and --precision of matrix products.
void add_model_options(CLI::App& app, RunDataOptions& options);
// --data, --vocabulary and --split.
void add_data_options(CLI::App& app, RunDataOptions& options);

}  // namespace routing
