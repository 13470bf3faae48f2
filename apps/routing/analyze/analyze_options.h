// What the arguments of the `analyze` commands say.
#pragma once

#include "inputs/run_data_options.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// What the commands share that look into the heads of a run.
struct HeadAnalysisOptions {
  RunDataOptions model = {.split = "test"};
  std::int64_t sequences = 10;
  std::int64_t sequence_length = 0;
  std::int64_t queries = 0;
  std::uint64_t seed = 1;
  std::vector<std::string> paths = {};
  bool json = false;
};

// RUN and the options of all such commands; the defaults are what `options` holds.
void add_head_analysis_options(CLI::App& app, HeadAnalysisOptions& options);

// A number that was left out.
inline constexpr std::int64_t kNotGiven = -1;

struct AttentionOptions {
  RunDataOptions model;
  std::string text;
  std::string file;
  std::string dash;         // "-" for standard input
  bool text_given = false;  // --text, also an empty one
  bool standard_input = false;
  std::int64_t num_tokens = 0;
  std::int64_t position = kNotGiven;
  std::string find;
  std::int64_t layer = kNotGiven;
  std::int64_t head = kNotGiven;
  std::int64_t top = 5;
  std::string colour = "auto";
  std::vector<std::string> paths;
  bool json = false;

  bool has_text() const { return text_given || !file.empty() || standard_input; }
};

inline constexpr std::int64_t kGalleryTokens = 64;

struct PatternsOptions {
  RunDataOptions model;  // only with a run
  std::int64_t layer = -1;
  std::string head;
  std::int64_t num_tokens = 0;  // 0 for as many as show what there is to see
  std::uint64_t seed = 1;
  std::vector<std::string> paths;
  bool json = false;
};

struct HealthOptions {
  RunDataOptions model;
  std::vector<std::string> runs;
  std::vector<std::string> paths;
  std::int64_t limit_tokens = 0;
  bool evaluate = false;  // --data or --split was given
  bool json = false;
};

struct JsdOptions {
  HeadAnalysisOptions common = {.queries = 256};
  std::int64_t draws = 10;
  bool published = false;
};

struct LeakOptions {
  std::vector<std::string> runs;
  std::string checkpoint = "last";
  std::string data;
  std::string split = "test";
  std::string precision;
  std::int64_t windows = 64;
  std::int64_t positions = 24;
  std::uint64_t seed = 1;
  std::int64_t checks = 8;
  bool check_all = false;
  std::vector<std::string> paths;
  bool json = false;
};

struct DistanceOptions {
  std::vector<std::string> runs;
  std::vector<std::string> paths;
  std::string checkpoint = "best";
  std::string split = "test";
  std::int64_t sequences = 64;
  std::int64_t sequence_length = 0;
  bool json = false;
};

}  // namespace routing
