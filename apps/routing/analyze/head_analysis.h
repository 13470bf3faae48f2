// What the commands that look into the heads of a run share: options, the model, and some sequences of its data.
#pragma once

#include "analyze/analyze_options.h"
#include "commands.h"
#include "inputs/run_data.h"
#include "routing/model/transformer.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct ProbedRun {
  std::filesystem::path model_path = {};
  std::filesystem::path data_path = {};
  Transformer model = nullptr;
  at::Tensor tokens = {};  // int64 [sequences, n]
  std::string validity = {};
  std::string data_label = {};  // "partial data" if the model or this look at it had not a whole set
  MatmulPrecision precision = MatmulPrecision::fp32;
};

// Loads the model and takes sequences that are spread evenly over the part, fewer if it has no more. Throws a
// ConfigError or FileError that says what does not fit.
ProbedRun open_probed_run(const HeadAnalysisOptions& options, const ProgramOptions& program);

// "tiny-enwik8 on enwik8", for titles: a preset may be trained on other data than its name says.
std::string run_title(const ProbedRun& run);
// The model's file and what its figures are worth.
std::string describe_model(const ProbedRun& run);
// "8 sequences of 2048 tokens, 64 queries in each, test part of …"
std::string describe_sequences(const HeadAnalysisOptions& options, const ProbedRun& run, std::int64_t queries);

}  // namespace routing
