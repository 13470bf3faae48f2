// How model.bands is written, and the bands that it cuts a vocabulary into (Grave et al. 2017, Baevski & Auli 2019).
//
//   "20000,60000"   of 267,735 words: ids 0 … 19,999, then 20,000 … 59,999, then 60,000 … 267,734
//   ""              one band: the whole vocabulary
//
// The vectors of band b are width / factor^b numbers wide, rounded down.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace routing {

struct VocabularyBand {
  std::int64_t first = 0;  // its first id
  std::int64_t words = 0;
  std::int64_t width = 0;
  friend bool operator==(const VocabularyBand&, const VocabularyBand&) = default;
};

// The ids where bands end: ascending, above 0. A ConfigError names the first that is not.
std::vector<std::int64_t> parse_bands(std::string_view text);

struct BandRule {
  std::string_view ends = {};
  std::int64_t vocab_size = 0;  // 0 means not known yet: then the last band has no words
  std::int64_t width = 0;       // of the first band
  double factor = 4.0;
};
// A ConfigError where a band would have no word, or no numbers for a word.
std::vector<VocabularyBand> vocabulary_bands(const BandRule& rule);

}  // namespace routing
