#include "routing/config/text/split_text.h"

#include "routing/config/text/number_text.h"
#include "routing/core/error.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace routing {
namespace {

constexpr std::int64_t kUnitsPerPercent = kWholeShare / 100;
constexpr std::size_t kDecimals = 4;
// Larger than any file; three of these can still be added.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60U;

constexpr const char* kGrammar =
    "; write train/valid/test as shares such as 90%/5%/5%, byte counts, or rest for one of them";

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    words.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return words;
}

// Not what a stream would take: no sign, no blanks, no exponent.
bool is_only_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<std::int64_t> number_up_to(std::int64_t most, std::string_view digits) {
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return result.ec == std::errc() && value <= most ? std::optional(value) : std::nullopt;
}

SplitPart parse_part(std::string_view split, std::string_view word) {
  if (word == "rest") return {};
  std::optional<std::int64_t> amount;
  const bool share = word.ends_with('%');
  if (share) {
    const std::string_view number = word.substr(0, word.size() - 1);
    const std::size_t point = std::min(number.find('.'), number.size());
    const std::string_view decimals = number.substr(std::min(point + 1, number.size()));
    std::string digits = std::string(number.substr(0, point)) + std::string(decimals);
    if (is_only_digits(digits)) {
      require<ConfigError>(decimals.size() <= kDecimals, "data.split: '", word, "' of '", split, "' has ",
                           decimals.size(), " decimals, at most ", kDecimals,
                           " are read; round it or give byte counts");
      digits.append(kDecimals - decimals.size(), '0');
      amount = number_up_to(kWholeShare, digits);
    }
  } else if (is_only_digits(word)) {
    amount = number_up_to(kMostBytes, word);
  }
  require<ConfigError>(amount.has_value(), "data.split: '", word, "' of '", split,
                       "' is neither a share between 0% and 100%, nor a count of bytes, nor rest", kGrammar);
  return {.unit = share ? SplitUnit::share : SplitUnit::bytes, .amount = *amount};
}

void check_sum_of_shares(std::string_view text, std::int64_t sum, bool has_rest) {
  const std::string percent = number_text(static_cast<double>(sum) / static_cast<double>(kUnitsPerPercent)) + "%";
  if (has_rest) {
    require<ConfigError>(sum <= kWholeShare, "data.split: the shares of '", text, "' sum to ", percent,
                         ", which is above 100%; lower one of them");
  } else {
    require<ConfigError>(sum == kWholeShare, "data.split: the shares of '", text, "' sum to ", percent,
                         ", not to 100%; change one of them, or write rest for it");
  }
}

}  // namespace

const std::vector<std::string>& split_names() {
  static const std::vector<std::string> names{"train", "valid", "test"};
  return names;
}

std::array<SplitPart, 3> parse_split(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  std::array<SplitPart, 3> parts;
  require<ConfigError>(words.size() == parts.size(), "data.split: '", text, "' has ", words.size(),
                       " parts instead of 3", kGrammar);
  int rests = 0;
  int shares = 0;
  int counts = 0;
  std::int64_t sum = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    parts[part] = parse_part(text, words[part]);
    rests += parts[part].unit == SplitUnit::rest ? 1 : 0;
    shares += parts[part].unit == SplitUnit::share ? 1 : 0;
    counts += parts[part].unit == SplitUnit::bytes && parts[part].amount > 0 ? 1 : 0;
    sum += parts[part].amount;
  }
  require<ConfigError>(rests <= 1, "data.split: '", text, "' has ", rests, " parts that are rest, at most 1 can be",
                       kGrammar);
  require<ConfigError>(shares == 0 || counts == 0, "data.split: '", text, "' mixes shares (", shares,
                       ") and byte counts (", counts, "); give all in one unit, beside 0 and rest");
  if (shares > 0) check_sum_of_shares(text, sum, rests == 1);
  return parts;
}

}  // namespace routing
