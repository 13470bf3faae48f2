// Words as tokens, as word-level language models of WikiText-103 count them.
//
// A word is a longest run of bytes without ASCII white space; the end of a line is a token of its own, <eos>, also of a
// blank line. Words that are not in the vocabulary become <unk>. With it WikiText-103 has 267,735 types and
// 103,227,021, 217,646 and 245,569 tokens.
#pragma once

#include "routing/data/tokenizers/string_table.h"
#include "routing/data/tokenizers/tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// Id 0 is <eos>. The words "<eos>" of a text are not ends of lines: they are unknown words.
//
// decode() writes a word as " word" and <eos> as " \n". So it gives back, byte for byte, a text whose words are all
// known and whose lines are all " w w … w \n" (a blank one is " \n"), as WikiText's are; of other texts it gives the
// same words and lines with the spaces set that way.
//
// The file has one word per line, in the order of ids, <eos> first.
class WordVocabulary : public Tokenizer {
 public:
  static constexpr std::string_view kEnd = "<eos>";
  static constexpr std::string_view kUnknown = "<unk>";

  // Words by id: <eos> first, <unk> among them, none twice, none empty or with white space; an InputError otherwise.
  explicit WordVocabulary(std::vector<std::string> words);
  // Throws  FileError  the file cannot be read, is empty, or is no such list; the message names the line
  static std::unique_ptr<WordVocabulary> load(const std::filesystem::path& path);

  std::string kind() const override { return "words"; }
  std::int64_t vocabulary_size() const override { return static_cast<std::int64_t>(words_.size()); }
  std::int64_t end_id() const override { return 0; }
  std::int32_t unknown_id() const { return unknown_id_; }
  const std::vector<std::string>& words() const { return words_; }
  // The id of a word of a text; that of <unk> for one that is not in the vocabulary.
  std::int32_t id_of(std::string_view word) const;
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::string hash() const override;
  void save(const std::filesystem::path& path) const override;

 private:
  std::string file_text() const;

  std::vector<std::string> words_;
  StringTable ids_;  // all words; <eos> as an empty one, which no text has
  std::int32_t unknown_id_ = 0;
};

// What becomes of words that a text has only once.
enum class WordsSeenOnce {
  kept,
  // They are <unk>, unless the text has that word itself: otherwise nothing would be learned about unknown words, and a
  // held-out text would cost whatever chance says.
  unknown,
};

// Counts the words of a text to make its vocabulary: <eos>, then the types by falling frequency, those that are equally
// frequent by first appearance. <unk> is a word like any other if the text has it, and the last one if it has not.
class WordCounter {
 public:
  // A piece of the text, cut after a line end or at least not inside a word.
  void add(std::string_view text);
  std::int64_t types() const { return words_.size(); }  // without <eos>
  std::int64_t tokens() const { return tokens_; }       // with one <eos> per line end
  std::unique_ptr<WordVocabulary> vocabulary(WordsSeenOnce once = WordsSeenOnce::kept) const;

 private:
  StringTable words_;                // in the order of first appearance
  std::vector<std::int64_t> times_;  // how often each
  std::int64_t tokens_ = 0;
};

}  // namespace routing
