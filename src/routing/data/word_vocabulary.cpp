#include "routing/data/word_vocabulary.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/tokenizers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace routing {
namespace {

constexpr std::array<bool, 256> kIsSpace = [] {
  std::array<bool, 256> is_space{};
  for (const unsigned char space : {' ', '\t', '\n', '\v', '\f', '\r'}) is_space[space] = true;
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

constexpr const char* kRule = "; a vocabulary has one word a line, <eos> first, <unk> among them, none twice";

}  // namespace

WordVocabulary::WordVocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  const std::string fault = fault_of(words_);
  require<InputError>(fault.empty(), "words: ", fault, kRule);
  ids_.reserve(words_.size());
  for (std::size_t id = 1; id < words_.size(); ++id) ids_.emplace(words_[id], static_cast<std::int32_t>(id));
  unknown_id_ = ids_.at(kUnknown);
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
  const auto found = ids_.find(word);
  return found == ids_.end() ? unknown_id_ : found->second;
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
    text += id == 0 ? "\n" : words_[static_cast<std::size_t>(id)];
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
    auto found = counts_.find(word);
    if (found == counts_.end()) {
      if (word == WordVocabulary::kEnd) return;
      found = counts_.emplace(word, Count{.place = types()}).first;
    }
    ++found->second.times;
  };
  walk(text, on_word, [&] { ++tokens_; });
}

std::int64_t WordCounter::types() const {
  return static_cast<std::int64_t>(counts_.size());
}

std::int64_t WordCounter::tokens() const {
  return tokens_;
}

std::unique_ptr<WordVocabulary> WordCounter::vocabulary() const {
  std::vector<const std::pair<const std::string, Count>*> entries;
  entries.reserve(counts_.size());
  for (const auto& entry : counts_) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [](const auto* one, const auto* other) {
    return std::pair(-one->second.times, one->second.place) < std::pair(-other->second.times, other->second.place);
  });
  std::vector<std::string> words{std::string(WordVocabulary::kEnd)};
  words.reserve(entries.size() + 2);
  for (const auto* const entry : entries) words.push_back(entry->first);
  if (!counts_.contains(WordVocabulary::kUnknown)) words.emplace_back(WordVocabulary::kUnknown);
  return std::make_unique<WordVocabulary>(std::move(words));
}

}  // namespace routing
