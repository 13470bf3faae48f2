#include "serve/page/growing_lines.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"

#include <algorithm>
#include <utility>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kPiece = 1 << 16;

std::uint64_t hash_of(std::string_view text) {
  return xxhash64(std::as_bytes(std::span(text.data(), text.size())));
}

// Writing JSON takes a stack as deep as it is nested.
bool nests_deeply(std::string_view text) {
  constexpr int kDeepest = 64;
  int depth = 0;
  for (const char letter : text) {
    if (letter == '[' || letter == '{') ++depth;
    if (letter == ']' || letter == '}') --depth;
    if (depth > kDeepest) return true;
  }
  return false;
}

}  // namespace

GrowingLines::GrowingLines(std::filesystem::path path, LineListener& listener)
    : path_(std::move(path)), listener_(&listener) {}

bool GrowingLines::refresh() {
  const FileFacts now = facts_of(path_);
  if (now == facts_) return false;
  std::vector<Line> before;
  try {
    const std::optional<PlainFile> file = now.there ? std::make_optional<PlainFile>(path_) : std::nullopt;
    if (!file || !goes_on(*file)) before = take_back();
    facts_ = file ? file->facts() : now;
    if (file) read_on(*file);
  } catch (const FileError& error) {
    // Nothing is read until something else is there.
    facts_ = now;
    if (before.empty()) before = take_back();
    complain(error.what());
  }
  if (before.empty()) return true;
  const std::size_t most = std::min(before.size(), lines_.size());
  std::size_t same = 0;
  while (same < most && before[same].hash == lines_[same].hash) ++same;
  if (same < before.size()) kept_.push_back(same);
  return true;
}

std::vector<GrowingLines::Line> GrowingLines::take_back() {
  problem_.clear();
  listener_->restart();
  return std::exchange(lines_, {});
}

// Is it the file whose lines are known, with more behind them?
bool GrowingLines::goes_on(const PlainFile& file) const {
  if (lines_.empty()) return problem_.empty();
  if (!file.facts().same_file(facts_) || file.facts().size < end()) return false;
  const Line& last = lines_.back();
  return hash_of(file.read(last.begin, last.end - last.begin)) == last.hash;
}

void GrowingLines::read_on(const PlainFile& file) {
  std::int64_t begin = end();
  std::string held;  // the beginning of a line
  std::int64_t offset = begin;
  while (true) {
    const std::string piece = file.read(offset, kPiece);
    if (piece.empty()) return;
    offset += static_cast<std::int64_t>(piece.size());
    std::string_view rest = piece;
    for (std::size_t at = rest.find('\n'); at != std::string_view::npos; at = rest.find('\n')) {
      held += rest.substr(0, at + 1);
      rest.remove_prefix(at + 1);
      if (is_too_long(held)) return;
      add(held, begin);
      begin += static_cast<std::int64_t>(held.size());
      held.clear();
    }
    held += rest;
    if (is_too_long(held)) return;
  }
}

// Whatever stands behind such a line is not looked at.
bool GrowingLines::is_too_long(std::string_view line) {
  if (static_cast<std::int64_t>(line.size()) <= kLongestLine) return false;
  complain(path_.string() + ": line " + std::to_string(lines_.size() + 1) + " is longer than " +
           std::to_string(kLongestLine >> 20) + " MiB; no line of a run is");
  return true;
}

void GrowingLines::add(std::string_view text, std::int64_t begin) {
  Line line{.begin = begin, .end = begin + static_cast<std::int64_t>(text.size()), .hash = hash_of(text)};
  const Json object = nests_deeply(text) ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  line.readable = object.is_object();
  const std::string number = std::to_string(lines_.size() + 1);
  try {
    if (line.readable) line.mark = listener_->take(object);
  } catch (const Json::exception& error) {
    line.readable = false;
    complain(path_.string() + ": line " + number + " is not of a run: " + error.what());
  }
  // A line that was parsed has complained already.
  if (!line.readable) complain(path_.string() + ": line " + number + " is not a JSON object; remove the line");
  lines_.push_back(line);
}

// The first thing that is wrong.
void GrowingLines::complain(const std::string& what) {
  if (problem_.empty()) problem_ = what;
}

std::size_t GrowingLines::kept_since(std::size_t cuts, std::size_t lines) const {
  for (std::size_t cut = cuts; cut < kept_.size(); ++cut) lines = std::min(lines, kept_[cut]);
  return std::min(lines, lines_.size());
}

std::optional<std::vector<Json>> GrowingLines::read(std::span<const std::size_t> lines) const {
  std::vector<Json> objects;
  if (lines.empty()) return objects;
  try {
    const PlainFile file(path_);
    for (const std::size_t number : lines) {
      const Line& line = lines_[number];
      if (!line.readable) continue;
      const std::string text = file.read(line.begin, line.end - line.begin);
      if (hash_of(text) != line.hash) return std::nullopt;
      objects.push_back(Json::parse(text));
    }
  } catch (const FileError&) {
    // Gone since the last look; the next one will say so.
    return std::nullopt;
  }
  return objects;
}

}  // namespace routing
