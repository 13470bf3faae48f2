#include "routing/data/tokenizers/subword_trainer.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/data/tokenizers/subwords_library.h"

#include <algorithm>
#include <limits>
#include <span>

namespace routing {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::int64_t kFixedPieces = 259;  // end, unknown, line end, bytes

// Where to cut a line that is too long: before its last space that fits, or else before a character.
std::size_t cut_of(std::string_view line) {
  if (line.size() <= kLongestLine) return line.size();
  const std::size_t space = line.rfind(' ', kLongestLine);
  if (space != std::string_view::npos && space > 0) return space;
  std::size_t cut = kLongestLine;
  while (cut > 1 && (static_cast<unsigned char>(line[cut]) & 0xC0U) == 0x80U) --cut;
  return cut;
}

// SentencePiece skips a line with NUL, a tab or U+2585, which it uses itself, as it does U+2581; pieces with carriage
// returns are of no use. All of these end a line here, and come out of a text as bytes.
void append_learnable(std::string_view line, std::string& lines) {
  constexpr std::string_view kMark = "\xE2\x96\x81";
  constexpr std::string_view kBoundary = "\xE2\x96\x85";
  for (std::size_t at = 0; at < line.size();) {
    const std::string_view rest = line.substr(at);
    const bool own = rest.starts_with(kMark) || rest.starts_with(kBoundary);
    const bool ends = own || rest.front() == '\0' || rest.front() == '\t' || rest.front() == '\r';
    lines += ends ? '\n' : rest.front();
    at += own ? kMark.size() : 1;
  }
  lines += '\n';
}

}  // namespace

SubwordTrainer::SubwordTrainer(const SubwordTrainerOptions& options) : options_(options) {
  require<ConfigError>(
      options.vocabulary_size > kFixedPieces && options.vocabulary_size <= std::numeric_limits<std::int32_t>::max(),
      "data.vocabulary_size is ", options.vocabulary_size, ", but subwords need more than the ", kFixedPieces,
      " pieces for bytes and ends, and ids of 32 bits");
}

void SubwordTrainer::add(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    while (!line.empty()) {
      const std::size_t cut = cut_of(line);
      add_line(line.substr(0, cut));
      line.remove_prefix(cut);
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

void SubwordTrainer::add_line(std::string_view line) {
  const std::uint64_t number = seen_++;
  const std::uint64_t key = xxhash64(std::as_bytes(std::span(&number, 1)));
  if (key > highest_key_) return;
  lines_.push_back({.key = key, .text = std::string(line)});
  bytes_ += line.size();
  while (bytes_ > options_.sample_bytes && lines_.size() > 1) {
    highest_key_ /= 2;
    std::erase_if(lines_, [&](const Line& kept) {
      const bool drop = kept.key > highest_key_;
      if (drop) bytes_ -= kept.text.size();
      return drop;
    });
  }
}

std::unique_ptr<Subwords> SubwordTrainer::train() const {
  std::string lines;
  lines.reserve(bytes_ + lines_.size());
  for (const Line& line : lines_) append_learnable(line.text, lines);
  require<ConfigError>(lines.find_first_not_of('\n') != std::string::npos,
                       "there is no text to learn subwords from; name a text, or use data.tokens=bytes");
  return std::make_unique<Subwords>(
      train_subwords({.lines = lines.data(),
                      .size = lines.size(),
                      .vocabulary_size = static_cast<std::int32_t>(options_.vocabulary_size),
                      .longest_line = static_cast<std::int32_t>(kLongestLine)}));
}

}  // namespace routing
