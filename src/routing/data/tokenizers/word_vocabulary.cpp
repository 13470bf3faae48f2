#include "routing/data/tokenizers/word_vocabulary.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/tokenizers/tokenizers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace routing {
namespace {

constexpr std::array<bool, 256> kIsSpace = [] {
  std::array<bool, 256> is_space{};
  for (const char space : {' ', '\t', '\n', '\v', '\f', '\r'}) is_space[static_cast<unsigned char>(space)] = true;
  return is_space;
}();

bool is_space(char letter) {
  return kIsSpace[static_cast<unsigned char>(letter)];
}

// Calls on_word for every word and on_line_end for every line end of the text, in order.
template <class OnWord, class OnLineEnd>
void walk(std::string_view text, const OnWord& on_word, const OnLineEnd& on_line_end) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (is_space(*at)) {
      if (*at == '\n') on_line_end();
      ++at;
      continue;
    }
    const char* const begin = at;
    while (at != end && !is_space(*at)) ++at;
    on_word(std::string_view(begin, static_cast<std::size_t>(at - begin)));
  }
}

// What is wrong with a list of words; empty if nothing is.
std::string fault_of(const std::vector<std::string>& words) {
  if (words.empty()) return "there are no words";
  if (words.size() > std::numeric_limits<std::int32_t>::max()) return "there are too many words for ids of 32 bits";
  if (words.front() != WordVocabulary::kEnd) return "line 1 is '" + words.front() + "', not <eos>";
  std::unordered_map<std::string_view, std::size_t> lines;
  lines.reserve(words.size());
  for (std::size_t line = 1; line <= words.size(); ++line) {
    const std::string& word = words[line - 1];
    if (word.empty()) return "line " + std::to_string(line) + " is empty";
    if (std::any_of(word.begin(), word.end(), is_space)) {
      return "line " + std::to_string(line) + " has white space in it";
    }
    const auto [before, is_new] = lines.emplace(word, line);
    if (!is_new) {
      return "lines " + std::to_string(before->second) + " and " + std::to_string(line) + " are both '" + word + "'";
    }
  }
  if (!lines.contains(WordVocabulary::kUnknown)) return "<unk> is not among the " + std::to_string(words.size());
  return "";
}

constexpr const char* kRule = "; a vocabulary has one word per line, <eos> first, <unk> among them, none twice";

}  // namespace

WordVocabulary::WordVocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  const std::string fault = fault_of(words_);
  require<InputError>(fault.empty(), "words: ", fault, kRule);
  ids_.add("");
  for (std::size_t id = 1; id < words_.size(); ++id) ids_.add(words_[id]);
  unknown_id_ = ids_.find(kUnknown);
}

std::unique_ptr<WordVocabulary> WordVocabulary::load(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string fault = text.empty() ? "has 0 bytes" : fault_of(words);
  require<FileError>(fault.empty(), path.string(), ": ", fault, kRule);
  return std::make_unique<WordVocabulary>(std::move(words));
}

std::int32_t WordVocabulary::id_of(std::string_view word) const {
  const std::int32_t id = ids_.find(word);
  return id == StringTable::kAbsent ? unknown_id_ : id;
}

void WordVocabulary::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  walk(
      text, [&](std::string_view word) { ids.push_back(id_of(word)); }, [&] { ids.push_back(0); });
}

std::string WordVocabulary::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    require_known_id(id, vocabulary_size());
    text += ' ';
    if (id == 0) {
      text += '\n';
    } else {
      text += words_[static_cast<std::size_t>(id)];
    }
  }
  return text;
}

std::string WordVocabulary::file_text() const {
  std::string text;
  for (const std::string& word : words_) text += word + '\n';
  return text;
}

std::string WordVocabulary::hash() const {
  return tokenizer_hash(kind(), file_text());
}

void WordVocabulary::save(const std::filesystem::path& path) const {
  write_file_at_once(path, file_text());
}

void WordCounter::add(std::string_view text) {
  const auto on_word = [&](std::string_view word) {
    ++tokens_;
    if (word == WordVocabulary::kEnd) return;
    const std::int32_t place = words_.add(word);
    if (words_.size() > static_cast<std::int64_t>(times_.size())) times_.push_back(0);
    ++times_[static_cast<std::size_t>(place)];
  };
  walk(text, on_word, [&] { ++tokens_; });
}

std::unique_ptr<WordVocabulary> WordCounter::vocabulary(WordsSeenOnce once) const {
  const bool has_unknown = words_.find(WordVocabulary::kUnknown) != StringTable::kAbsent;
  std::vector<std::int32_t> places(times_.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](std::int32_t one, std::int32_t other) {
    return times_[static_cast<std::size_t>(one)] > times_[static_cast<std::size_t>(other)];
  });
  std::vector<std::string> words{std::string(WordVocabulary::kEnd)};
  words.reserve(places.size() + 2);
  for (const std::int32_t place : places) {
    if (once == WordsSeenOnce::unknown && !has_unknown && times_[static_cast<std::size_t>(place)] == 1) break;
    words.emplace_back(words_[place]);
  }
  if (!has_unknown) words.emplace_back(WordVocabulary::kUnknown);
  return std::make_unique<WordVocabulary>(std::move(words));
}

}  // namespace routing
