#include "routing/data/split.h"

#include "routing/core/error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

namespace routing {
namespace {

// Shares are counted in whole ten-thousandths of a percent: sums and floors are then exact.
constexpr std::int64_t kUnitsPerPercent = 10'000;
constexpr std::int64_t kWhole = 100 * kUnitsPerPercent;
constexpr std::size_t kDecimals = 4;
// Larger than any file; three of these can still be added.
constexpr std::int64_t kLargest = std::int64_t{1} << 60U;

enum class Unit { bytes, share, rest };

struct Part {
  Unit unit = Unit::bytes;
  std::int64_t amount = 0;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

class SplitRule {
 public:
  SplitRule(const std::string& rule, std::int64_t bytes, const std::string& path)
      : rule_(rule), bytes_(bytes), path_(path) {}

  CorpusSplit split() const {
    std::array<Part, 3> parts = parsed_parts();
    check_units(parts);
    const bool shares =
        std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.unit == Unit::share; });
    fill_in_rest(parts, shares);
    const std::int64_t train_end = shares ? floor_of_share(parts[0].amount) : parts[0].amount;
    const std::int64_t valid_end =
        shares ? floor_of_share(parts[0].amount + parts[1].amount) : train_end + parts[1].amount;
    const std::int64_t test_end = shares ? bytes_ : valid_end + parts[2].amount;
    return {{0, train_end}, {train_end, valid_end}, {valid_end, test_end}, bytes_ - test_end};
  }

 private:
  template <class... Words>
  void check(bool condition, const Words&... words) const {
    require<ConfigError>(condition, "data.split '", rule_, "' of ", path_, " (", bytes_, " bytes): ", words...);
  }

  std::array<Part, 3> parsed_parts() const {
    std::vector<std::string_view> words;
    std::string_view left = rule_;
    for (std::size_t slash = left.find('/'); slash != std::string_view::npos; slash = left.find('/')) {
      words.push_back(trimmed(left.substr(0, slash)));
      left.remove_prefix(slash + 1);
    }
    words.push_back(trimmed(left));
    check(words.size() == 3, words.size(), " parts, but TRAIN/VALID/TEST has 3; write it like 90%/5%/5%");
    return {parsed(words[0]), parsed(words[1]), parsed(words[2])};
  }

  Part parsed(std::string_view word) const {
    if (word == "rest") return {Unit::rest, 0};
    const bool share = word.ends_with('%');
    std::string_view number = word.substr(0, word.size() - (share ? 1 : 0));
    std::string digits(number);
    if (share) {
      const std::size_t point = number.find('.');
      const std::string_view decimals = point == std::string_view::npos ? "" : number.substr(point + 1);
      check(decimals.size() <= kDecimals, "'", word, "' has ", decimals.size(), " decimals, at most ", kDecimals,
            " are read; round it or give bytes");
      digits =
          std::string(number.substr(0, point)) + std::string(decimals) + std::string(kDecimals - decimals.size(), '0');
    }
    std::int64_t amount = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), amount);
    const bool whole_word = error == std::errc() && end == digits.data() + digits.size();
    check(!number.empty() && whole_word && amount >= 0 && amount <= kLargest, "'", word,
          "' is no part; write bytes like 2000000, a share like 5%, or rest");
    return {share ? Unit::share : Unit::bytes, amount};
  }

  void check_units(const std::array<Part, 3>& parts) const {
    const auto count = [&](auto&& test) { return std::count_if(parts.begin(), parts.end(), test); };
    const auto rests = count([](const Part& part) { return part.unit == Unit::rest; });
    check(rests <= 1, rests, " parts are 'rest', at most 1 can be; give the others bytes or shares");
    const auto shares = count([](const Part& part) { return part.unit == Unit::share; });
    const auto counts = count([](const Part& part) { return part.unit == Unit::bytes && part.amount > 0; });
    check(shares == 0 || counts == 0, shares, " parts are shares and ", counts,
          " are bytes; give all in one unit, beside 0 and rest");
  }

  // Gives "rest" what the others leave of the file, and checks that the parts fit it.
  void fill_in_rest(std::array<Part, 3>& parts, bool shares) const {
    const std::int64_t whole = shares ? kWhole : bytes_;
    const std::int64_t sum = parts[0].amount + parts[1].amount + parts[2].amount;
    const auto rest =
        std::find_if(parts.begin(), parts.end(), [](const Part& part) { return part.unit == Unit::rest; });
    if (shares) {
      const bool fits = rest != parts.end() ? sum <= whole : sum == whole;
      check(fits, "the shares sum to ", static_cast<double>(sum) / kUnitsPerPercent,
            " %, not to 100 %; change one of them, or write rest for it");
    } else {
      check(sum <= whole, "the parts sum to ", sum, " bytes, but the file has ", whole,
            "; lower one of them, or write rest for it");
    }
    if (rest != parts.end()) rest->amount = whole - sum;
  }

  std::int64_t floor_of_share(std::int64_t units) const {
    return bytes_ / kWhole * units + bytes_ % kWhole * units / kWhole;
  }

  const std::string& rule_;
  std::int64_t bytes_;
  const std::string& path_;
};

}  // namespace

CorpusSplit split_corpus(const std::string& rule, std::int64_t bytes, const std::string& path) {
  require<InputError>(bytes >= 0, path, ": a file of ", bytes, " bytes cannot be split; a size is at least 0");
  return SplitRule(rule, bytes, path).split();
}

}  // namespace routing
