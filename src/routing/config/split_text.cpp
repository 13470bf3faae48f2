#include "routing/config/split_text.h"

#include "routing/config/number_text.h"
#include "routing/core/error.h"

#include <algorithm>

namespace routing {
namespace {

constexpr const char* kGrammar =
    "; write train/valid/test as shares such as 90%/5%/5%, byte counts, or rest for one of them";

SplitPart parse_part(std::string_view split, std::string_view part) {
  if (part == "rest") return {};
  if (part.ends_with('%')) {
    const auto percent = number_in<double>(part.substr(0, part.size() - 1));
    if (percent && *percent >= 0.0 && *percent <= 100.0) return {.percent = percent};
  } else if (const auto bytes = number_in<std::int64_t>(part); bytes && *bytes >= 0) {
    return {.bytes = bytes};
  }
  throw ConfigError("data.split: '" + std::string(part) + "' of '" + std::string(split) +
                    "' is neither a share between 0% and 100%, nor a count of bytes, nor rest" + kGrammar);
}

}  // namespace

const std::vector<std::string>& split_names() {
  static const std::vector<std::string> names{"train", "valid", "test"};
  return names;
}

std::array<SplitPart, 3> parse_split(std::string_view text) {
  std::array<SplitPart, 3> parts;
  std::size_t count = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++count) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    if (count < parts.size()) parts[count] = parse_part(text, text.substr(begin, end - begin));
    begin = end + 1;
  }
  require<ConfigError>(count == parts.size(), "data.split: '", text, "' has ", count, " parts instead of 3", kGrammar);
  double percent = 0.0;
  int rests = 0;
  for (const SplitPart& part : parts) {
    percent += part.percent.value_or(0.0);
    rests += part.is_rest() ? 1 : 0;
  }
  require<ConfigError>(rests <= 1, "data.split: '", text, "' has ", rests, " parts that are rest instead of 1",
                       kGrammar);
  // Shares such as 33.3% are not exact in binary.
  require<ConfigError>(percent <= 100.0 + 1e-9, "data.split: the shares of '", text, "' are ", percent,
                       "% together, which is above 100%; lower one of them");
  return parts;
}

}  // namespace routing
