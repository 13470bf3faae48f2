#include "routing/data/sources/cuts.h"

#include "routing/core/error.h"
#include "routing/data/sources/split.h"

#include <algorithm>

namespace routing {
namespace {

constexpr std::int64_t kPercent = 100;
constexpr std::int64_t kTrainOfValid = 90;  // percent, where there is no train
constexpr std::int64_t kValidOfTrain = 2;   // percent, where there is no valid

std::int64_t percent_of(std::int64_t size, std::int64_t percent) {
  return size / kPercent * percent + size % kPercent * percent / kPercent;
}

}  // namespace

std::int64_t text_bytes(const TextSource& source, const std::string& part) {
  std::int64_t total = 0;
  source.read(part, [&](std::string_view text, bool) { total += static_cast<std::int64_t>(text.size()); });
  return total;
}

CutPlan plan_cuts(const SourceFacts& facts, const std::function<std::int64_t(const std::string&)>& size_of,
                  const CutRule& rule) {
  const auto has = [&](const char* name) { return facts.part(name) != nullptr; };
  const auto whole = [](const std::string& name) { return Cut{name, name, 0, kToTheEnd}; };
  CutPlan plan;
  if (facts.parts.size() == 1 && !has("train") && !rule.train_needed) {
    for (const char* name : {"train", "valid", "test"}) {
      plan.cuts.push_back(has(name) ? whole(name) : Cut{name, facts.parts.front().name, 0, 0});
    }
  } else if (facts.parts.size() == 1) {
    const std::string& only = facts.parts.front().name;
    const CorpusSplit split = split_corpus(rule.split, size_of(only), facts.parts.front().files.front().string());
    plan.cuts = {{"train", only, split.train.begin, split.train.end},
                 {"valid", only, split.valid.begin, split.valid.end},
                 {"test", only, split.test.begin, split.test.end}};
    plan.note = "train, valid and test are cut from one piece by " + rule.split;
  } else if (!has("train") && !rule.train_needed) {
    plan.cuts = {{"train", "valid", 0, 0}, whole("valid"), whole("test")};
  } else if (!has("train")) {
    const std::int64_t size = size_of("valid");
    const std::int64_t train = percent_of(size, kTrainOfValid);
    plan.cuts = {{"train", "valid", 0, train}, {"valid", "valid", train, size}, whole("test")};
    plan.note = "train is the first 90 % of valid";
  } else if (!has("valid")) {
    const std::int64_t size = size_of("train");
    const std::int64_t train =
        size - std::max<std::int64_t>(std::min<std::int64_t>(size - 1, 1), percent_of(size, kValidOfTrain));
    plan.cuts = {{"train", "train", 0, train}, {"valid", "train", train, size}, whole("test")};
    plan.note = "valid is the last 2 % of train";
  } else if (!has("test")) {
    const std::int64_t size = size_of("valid");
    plan.cuts = {whole("train"), {"valid", "valid", 0, size / 2}, {"test", "valid", size / 2, size}};
    plan.note = "test is the second half of valid";
  } else {
    plan.cuts = {whole("train"), whole("valid"), whole("test")};
  }
  require<ConfigError>(!rule.train_needed || plan.cuts.front().end > plan.cuts.front().begin,
                       facts.parts.front().files.front().string(), ": nothing is left for train under data.split ",
                       rule.split, "; give train a larger share");
  return plan;
}

void read_cut(const TextSource& source, const Cut& cut, const TextSink& sink) {
  std::int64_t place = 0;  // of the next byte in the part
  source.read(cut.from, [&](std::string_view text, bool ends_document) {
    const std::int64_t first = place;
    place += static_cast<std::int64_t>(text.size());
    // Pieces begin where lines do; the first line that begins at or after a place decides.
    const auto line_at = [&](std::int64_t boundary) {
      if (boundary <= first) return std::size_t{0};
      if (boundary >= place) return text.size();
      const std::size_t end = text.find('\n', static_cast<std::size_t>(boundary - first) - 1);
      return end == std::string_view::npos ? text.size() : end + 1;
    };
    const std::size_t begin = line_at(cut.begin);
    const std::size_t end = line_at(cut.end);
    if (begin < end || (text.empty() && cut.begin <= first && first < cut.end)) {
      sink(text.substr(begin, end - begin), ends_document && end == text.size());
    }
  });
}

void read_cut(const ImageSource& source, const Cut& cut, const ImageSink& sink) {
  std::int64_t image = 0;
  source.read(cut.from, [&](std::span<const std::uint8_t> values) {
    if (cut.begin <= image && image < cut.end) sink(values);
    ++image;
  });
}

}  // namespace routing
