// A file of JSON lines that another process writes: metrics.jsonl, clusters.jsonl. Only what is new is read, once, and
// of each line a mark is kept, not its text.
//
// The file may grow, end in half a line, be cut back or replaced (a resumed training does both), vanish and come back.
#pragma once

#include "serve/page/file_facts.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// What is remembered of a line.
struct LineMark {
  std::int64_t step = -1;
  bool training = false;  // of many like it, which may be thinned
};

// Hears every line once, in order; from the first one on again after restart().
class LineListener {
 public:
  virtual ~LineListener() = default;
  virtual void restart() = 0;
  // May throw a nlohmann::json::exception for a line that is of another kind.
  virtual LineMark take(const nlohmann::ordered_json& line) = 0;
};

class GrowingLines {
 public:
  // The listener must outlive it.
  GrowingLines(std::filesystem::path path, LineListener& listener);

  // Looks at the file and reads what is new; true if anything has changed. Never throws for what it finds there: see
  // problem().
  bool refresh();

  // Whole lines, as the last refresh() saw them.
  std::size_t size() const { return lines_.size(); }
  const LineMark& mark(std::size_t line) const { return lines_[line].mark; }
  // Why not every line can be told; empty if all can.
  const std::string& problem() const { return problem_; }

  // How often lines were taken back, and how many of the lines that there were before the change of that number are
  // still the same.
  std::size_t cuts() const { return kept_.size(); }
  std::size_t kept_since(std::size_t cuts, std::size_t lines) const;

  // These lines, ascending, without those that are no JSON objects. Nothing if the file is not what the last refresh()
  // saw of it any more.
  std::optional<std::vector<nlohmann::ordered_json>> read(std::span<const std::size_t> lines) const;

  static constexpr std::int64_t kLongestLine = 4 << 20;

 private:
  struct Line {
    std::int64_t begin = 0;
    std::int64_t end = 0;  // behind its '\n'
    std::uint64_t hash = 0;
    LineMark mark = {};
    bool readable = true;
  };
  std::int64_t end() const { return lines_.empty() ? 0 : lines_.back().end; }
  std::vector<Line> take_back();
  bool goes_on(const PlainFile& file) const;
  void read_on(const PlainFile& file);
  bool is_too_long(std::string_view line);
  void add(std::string_view text, std::int64_t begin);
  void complain(const std::string& what);

  std::filesystem::path path_;
  LineListener* listener_;
  FileFacts facts_;
  std::vector<Line> lines_;
  std::vector<std::size_t> kept_;  // of the lines before, by each cut
  std::string problem_;
};

}  // namespace routing
