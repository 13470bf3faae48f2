// A data set tokenised once: a folder with one shard per part, the tokeniser, and what is known about it.
//
//   data.json        what DataFacts says, and the source
//   train.shard valid.shard test.shard
//   vocabulary.txt   words, one per line; or subwords.model for subwords; neither for bytes and images
//
// The folder appears in one step when everything in it is written; until then it is a sibling NAME.part-PROCESS. What a
// killed process left of it is removed when the same data are prepared again.
#pragma once

#include "routing/config/experiment.h"
#include "routing/data/sources/source.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace routing {

struct DataFacts {
  std::string format;  // as data.format says it
  TokenKind tokens = TokenKind::bytes;
  std::int64_t vocabulary_size = 256;
  std::string tokenizer_hash = std::string(16, '0');
  ImageShape image = {};     // 0 x 0 for text
  std::string missing = {};  // what a whole set has and this one has not; empty if it is whole
  std::string cut = {};      // what was cut from what; empty if the set brings its parts

  bool is_image() const { return image.height > 0; }
  std::int64_t record_length() const { return image.values(); }  // 0 for text
  // "partial data", or nothing for a whole set: stands beside every likelihood.
  std::string label() const { return missing.empty() ? "" : "partial data"; }
  friend bool operator==(const DataFacts&, const DataFacts&) = default;
};

struct PrepareOptions {
  bool train_needed = true;                            // false for evaluation: see cuts.h
  std::function<void(const std::string&)> notes = {};  // lines about what is being done, for people who wait
};

inline constexpr const char* kFactsFile = "data.json";

// Tokenises what config.path holds into the folder, which must not exist or be empty. data.vocabulary is used if it is
// given, otherwise words and subwords are made from train.
// Throws a ConfigError for a file that is read as bytes, which is its own shard, and for a part of a set under
// data.require_whole.
void prepare_data(const DataConfig& config, const std::filesystem::path& folder, const PrepareOptions& options = {});

// A ConfigError with what is missing, if data.require_whole asks for a whole set.
void require_whole_if_asked(const DataConfig& config, const std::string& missing);

bool is_prepared(const std::filesystem::path& folder);
// Throws a FileError that begins with the path for what is no such file or of a later version.
DataFacts read_data_facts(const std::filesystem::path& folder);
// The file of the tokeniser in such a folder; empty for bytes and images.
std::filesystem::path tokenizer_file(const std::filesystem::path& folder, TokenKind tokens);

// Where a Dataset keeps what it has tokenised: data.cache, or $XDG_CACHE_HOME/routing, or ~/.cache/routing; and in
// it a folder named by the source's files with their sizes and times, the tokens and the vocabulary.
std::filesystem::path cache_folder(const DataConfig& config, bool train_needed = true);

// Absolute, without "." and "..", and without a slash at its end: one name for one place.
std::filesystem::path tidy_path(const std::filesystem::path& path);
// The same of each path of a list (config/text/path_list.h) but standard input.
std::string tidy_paths(const std::string& list);

// The words of a text: longest runs without ASCII white space.
std::int64_t count_words(std::string_view text);

}  // namespace routing
