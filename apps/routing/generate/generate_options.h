// What the arguments of `routing generate` say.
#pragma once

#include "ranks/rank_options.h"
#include "routing/generation/sampler.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace routing {

struct GenerateArguments {
  std::string run;
  std::string checkpoint = "best";
  std::string vocabulary;
  std::string precision;

  std::string dash;  // "-" for a prompt on standard input
  std::string prompt;
  std::string prompt_file;
  std::string prompt_ids;
  std::vector<std::string> images;  // PNG files to complete
  std::string complete_split;

  SamplingOptions sampling = {};
  std::int64_t max_new_tokens = 0;  // 0 means 256, or as trained for an encoder-decoder
  std::int64_t num_samples = 1;
  std::vector<std::string> stops;
  bool ignore_end = false;
  std::int64_t beams = 0;  // 0 means sampling
  double length_penalty = 1.0;

  std::int64_t batch_size = 32;
  std::int64_t prefill_block = 512;
  bool no_cache = false;
  std::int64_t memory_limit = 0;  // MiB
  LocalRanks ranks;               // that read the prompt together

  std::string out;
  bool force = false;
  bool echo = false;
  bool logprobs = false;
  std::int64_t alternatives = 0;  // of --logprobs N
  std::string logprobs_value;     // as it was typed
  bool json = false;

  std::set<std::string> given;  // long names of all options that were typed, and "-"
  bool has(const std::string& name) const { return given.contains(name); }
};

void add_generate_options(CLI::App& app, GenerateArguments& arguments);

// Completes what add_generate_options() set up once the line is parsed, and refuses what does not go together.
// Throws a UsageError.
void finish_generate_options(const CLI::App& app, GenerateArguments& arguments);

// Throws a UsageError for the first of `names` that was given: "--stop is for text, but RUN holds a model of images".
void refuse_given(const GenerateArguments& arguments, const std::vector<std::string>& names, const std::string& reason);

}  // namespace routing
