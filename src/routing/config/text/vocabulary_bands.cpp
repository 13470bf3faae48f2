#include "routing/config/text/vocabulary_bands.h"

#include "routing/core/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace routing {
namespace {

std::int64_t parse_end(std::string_view all, std::string_view word) {
  while (word.starts_with(' ')) word.remove_prefix(1);
  while (word.ends_with(' ')) word.remove_suffix(1);
  std::int64_t end = 0;
  const auto result = std::from_chars(word.data(), word.data() + word.size(), end);
  require<ConfigError>(result.ec == std::errc() && result.ptr == word.data() + word.size() && end > 0, "model.bands: '",
                       word, "' of '", all,
                       "' is not a whole number above 0; write the ids where bands end, such as 20000,60000");
  return end;
}

}  // namespace

std::vector<std::int64_t> parse_bands(std::string_view text) {
  std::vector<std::int64_t> ends;
  if (text.empty()) return ends;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::int64_t end = parse_end(text, text.substr(begin, comma - begin));
    require<ConfigError>(ends.empty() || end > ends.back(), "model.bands: ", end, " of '", text, "' stands after ",
                         ends.empty() ? 0 : ends.back(), "; write the ids where bands end in ascending order");
    ends.push_back(end);
    begin = comma + 1;
  }
  return ends;
}

std::vector<VocabularyBand> vocabulary_bands(const BandRule& rule) {
  require<ConfigError>(rule.factor >= 1.0 && std::isfinite(rule.factor), "model.band_factor is ", rule.factor,
                       ", but it must be a finite number of at least 1");
  std::vector<std::int64_t> ends = parse_bands(rule.ends);
  const std::int64_t last = ends.empty() ? 0 : ends.back();
  require<ConfigError>(rule.vocab_size == 0 || last < rule.vocab_size, "model.bands '", rule.ends, "' end at id ", last,
                       ", but the vocabulary has ", rule.vocab_size,
                       " entries, so that no word is left for the last band; lower model.bands");
  ends.push_back(rule.vocab_size == 0 ? last : rule.vocab_size);
  std::vector<VocabularyBand> bands;
  double narrower = 1.0;
  for (const std::int64_t end : ends) {
    const std::int64_t first = bands.empty() ? 0 : bands.back().first + bands.back().words;
    const auto width = static_cast<std::int64_t>(std::floor(static_cast<double>(rule.width) / narrower));
    require<ConfigError>(width >= 1, "model.bands '", rule.ends, "' are ", ends.size(), " bands, but vectors of ",
                         rule.width, " numbers have none left in band ", bands.size(), " with model.band_factor ",
                         rule.factor, "; write fewer bands or lower model.band_factor");
    bands.push_back({.first = first, .words = end - first, .width = width});
    narrower *= rule.factor;
  }
  return bands;
}

}  // namespace routing
