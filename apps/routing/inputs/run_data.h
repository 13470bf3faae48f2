// The data that an analysis runs a trained model on: the run's own, or others that are read with its tokens.
#pragma once

#include "inputs/run_data_options.h"
#include "routing/config/experiment.h"
#include "routing/data/dataset.h"
#include "routing/model/transformer.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace routing {

// The model of the run. A ConfigError refuses an encoder-decoder: `command` names what does not fit it.
struct RunModel {
  std::filesystem::path path = {};
  Transformer model = nullptr;
};
RunModel load_run_model(const RunDataOptions& options, const std::string& command);

// The data with the tokens that the model learned.
//
// Throws  ConfigError  no data are named, or those have other tokens or sizes than the model
//         FileError    as Dataset
std::unique_ptr<Dataset> open_run_data(const RunDataOptions& options, const RunModel& run, bool quiet);

// How many tokens there are from `offset` on, at least 1; of images, those of one.
std::int64_t tokens_from(const Dataset& data, const RunDataOptions& options);

// Tokens of a part as int64 [1, count], from `offset` on; of images the offset counts images. A ConfigError if there
// are not so many.
at::Tensor stretch_of(const Dataset& data, const RunDataOptions& options, std::int64_t count);

}  // namespace routing
