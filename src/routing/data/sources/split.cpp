#include "routing/data/sources/split.h"

#include "routing/config/text/split_text.h"
#include "routing/config/words.h"
#include "routing/core/error.h"

#include <algorithm>
#include <array>

namespace routing {
namespace {

// floor(bytes * share / kWholeShare) without the product, which may be too large.
std::int64_t floor_of_share(std::int64_t bytes, std::int64_t share) {
  return bytes / kWholeShare * share + bytes % kWholeShare * share / kWholeShare;
}

}  // namespace

CorpusSplit split_corpus(const std::string& rule, std::int64_t bytes, const std::string& path) {
  require<InputError>(bytes >= 0, path, ": a file of ", bytes, " bytes cannot be split; a size is at least 0");
  std::array<SplitPart, 3> parts = parse_split(rule);
  const auto find_unit = [&](SplitUnit unit) { return std::ranges::find(parts, unit, &SplitPart::unit); };
  const bool shares = find_unit(SplitUnit::share) != parts.end();
  const std::int64_t whole = shares ? kWholeShare : bytes;
  const std::int64_t sum = parts[0].amount + parts[1].amount + parts[2].amount;
  // The sum of shares has been checked with the text.
  require<ConfigError>(sum <= whole, "data.split: the parts of '", rule, "' sum to ", sum, " bytes, but ", path,
                       " has ", whole, "; lower one of them, or write rest for it");
  const auto rest = find_unit(SplitUnit::rest);
  if (rest != parts.end()) rest->amount = whole - sum;
  const std::int64_t before_valid = parts[0].amount;
  const std::int64_t before_test = before_valid + parts[1].amount;
  const std::int64_t valid_begin = shares ? floor_of_share(bytes, before_valid) : before_valid;
  const std::int64_t test_begin = shares ? floor_of_share(bytes, before_test) : before_test;
  const std::int64_t test_end = shares ? bytes : before_test + parts[2].amount;
  return {{0, valid_begin}, {valid_begin, test_begin}, {test_begin, test_end}, bytes - test_end};
}

const SplitBounds& part_named(const CorpusSplit& split, const std::string& name) {
  require_word(name, "part of the data", split_names());
  if (name == "train") return split.train;
  return name == "valid" ? split.valid : split.test;
}

}  // namespace routing
