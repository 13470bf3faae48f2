#include "routing/generation/text_stream.h"

#include "data/hostile_texts.h"
#include "data/tokenizers/model_writer.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/core/utf8.h"
#include "routing/data/tokenizers/byte_tokenizer.h"
#include "routing/data/tokenizers/subword_trainer.h"
#include "routing/data/tokenizers/word_vocabulary.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace routing::text_stream_test {
namespace {

using Ids = std::vector<std::int32_t>;
using Texts = std::vector<std::string>;

// Letters of one to four bytes: Latin, Greek, Cyrillic, Hebrew, Devanagari, Han, emoji with a joiner.
const Texts kLetters{"a",
                     "b",
                     "e",
                     "s",
                     "t",
                     "\xC3\xA9",
                     "\xCE\xB1",
                     "\xCF\x89",
                     "\xD0\xB6",
                     "\xD7\xA9",
                     "\xE0\xA4\xB9",
                     "\xE6\xBC\xA2",
                     "\xE5\xAD\x97",
                     "\xE2\x80\x8D",
                     "\xF0\x9F\x98\x80",
                     "\xF0\x9F\x91\xA9",
                     " ",
                     " ",
                     " ",
                     "\n"};

std::string random_text(std::uint64_t number, int letters) {
  RandomStream stream(1, "text", {number});
  std::string text;
  for (int letter = 0; letter < letters; ++letter) {
    text += kLetters[stream.below(static_cast<std::uint32_t>(kLetters.size()))];
  }
  return text;
}

std::vector<std::unique_ptr<Tokenizer>> tokenizers() {
  std::vector<std::unique_ptr<Tokenizer>> all;
  all.push_back(std::make_unique<ByteTokenizer>());
  WordCounter words;
  SubwordTrainer subwords({.vocabulary_size = 400});
  for (std::uint64_t number = 0; number < 30; ++number) {
    words.add(random_text(number, 300) + "\n");
    subwords.add(random_text(number, 300) + "\n");
  }
  all.push_back(words.vocabulary());
  all.push_back(subwords.train());
  return all;
}

Ids ids_of(const Tokenizer& tokenizer, const std::string& text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

// What comes out for each id, and last what finish() gives.
Texts pieces_of(TextStream stream, const Ids& ids) {
  Texts pieces;
  for (const std::int32_t id : ids) pieces.push_back(stream.add(id));
  pieces.push_back(stream.finish());
  return pieces;
}

Texts pieces_of_bytes(const std::string& text, const Texts& stops = {}) {
  const ByteTokenizer bytes;
  return pieces_of(TextStream(bytes, stops), ids_of(bytes, text));
}

std::string joined_text(const Texts& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

std::string before_first_stop(const std::string& text, const Texts& stops) {
  std::size_t end = text.size();
  for (const std::string& stop : stops) end = std::min(end, text.find(stop));
  return text.substr(0, end);
}

TEST(TextStream, PiecesTogetherAreTheDecodedTextForEveryTokenizer) {
  for (const auto& tokenizer : tokenizers()) {
    Texts texts = hostile_texts();
    for (std::uint64_t number = 100; number < 150; ++number) texts.push_back(random_text(number, 200));
    for (const std::string& text : texts) {
      const Ids ids = ids_of(*tokenizer, text);
      const Texts pieces = pieces_of(TextStream(*tokenizer), ids);
      EXPECT_EQ(joined_text(pieces), tokenizer->decode(ids)) << tokenizer->kind();
      for (const std::string& piece : pieces) EXPECT_EQ(first_invalid_utf8(piece), std::nullopt) << tokenizer->kind();
    }
  }
}

// A model may say anything: ids in no order that a text would give.
TEST(TextStream, PiecesOfRandomIdsTogetherAreTheirDecodedBytes) {
  for (const auto& tokenizer : tokenizers()) {
    RandomStream stream(2, "ids");
    for (int round = 0; round < 200; ++round) {
      Ids ids;
      for (int place = 0; place < 100; ++place) {
        ids.push_back(
            static_cast<std::int32_t>(stream.below(static_cast<std::uint32_t>(tokenizer->vocabulary_size()))));
      }
      ASSERT_EQ(joined_text(pieces_of(TextStream(*tokenizer), ids)), tokenizer->decode(ids)) << tokenizer->kind();
    }
  }
}

TEST(TextStream, CharactersComeWithTheirLastByte) {
  EXPECT_EQ(pieces_of_bytes("a\xC3\xA9z"), (Texts{"a", "", "\xC3\xA9", "z", ""}));
  EXPECT_EQ(pieces_of_bytes("\xF0\x9F\x98\x80"), (Texts{"", "", "", "\xF0\x9F\x98\x80", ""}));
  // Byte pieces of subwords too.
  const Subwords subwords(written(small_exact_model({"a",
                                                     "\xE2\x96\x81"
                                                     "a"})));
  EXPECT_EQ(pieces_of(TextStream(subwords), {259, 3 + 0xC3, 3 + 0xA9, 260, 0}),
            (Texts{"a", "", "\xC3\xA9", " a", "", ""}));
}

TEST(TextStream, BytesThatAreNoCharacterPassThroughAndHalfACharacterComesAtTheEnd) {
  EXPECT_EQ(pieces_of_bytes("\xFF"
                            "a"),
            (Texts{"\xFF", "a", ""}));
  EXPECT_EQ(pieces_of_bytes("\x80\x80"), (Texts{"\x80", "\x80", ""}));
  EXPECT_EQ(pieces_of_bytes("\xE2"
                            "a"),
            (Texts{"",
                   "\xE2"
                   "a",
                   ""}));
  EXPECT_EQ(pieces_of_bytes("\xE0\x80"), (Texts{"", "\xE0\x80", ""}));  // longer than needed
  EXPECT_EQ(pieces_of_bytes("a\xE2\x82"), (Texts{"a", "", "", "\xE2\x82"}));
}

TEST(TextStream, WordsComeWithTheirSpaceAndLineEndsAsTheyAreDecoded) {
  const WordVocabulary words({"<eos>", "the", "cat", "<unk>"});
  EXPECT_EQ(pieces_of(TextStream(words), {1, 2, 0, 3}), (Texts{" the", " cat", " \n", " <unk>", ""}));
}

TEST(TextStream, StopTextEndsTheOutputBeforeItAcrossTokens) {
  EXPECT_EQ(pieces_of_bytes("one\n\ntwo", {"\n\n"}), (Texts{"o", "n", "e", "", "", "", "", "", ""}));
  const WordVocabulary words({"<eos>", "the", "cat", "<unk>"});
  TextStream stream(words, {"e ca"});  // begins inside one word, ends inside the next
  EXPECT_EQ(stream.add(1), " th");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.add(2), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.add(1), "");
  EXPECT_EQ(stream.finish(), "");
  // All within one token.
  TextStream inside(words, {"a"});
  EXPECT_EQ(inside.add(2), " c");
  EXPECT_TRUE(inside.stopped());
  // Inside characters: the stop is Greek, its first byte is shared with another letter.
  EXPECT_EQ(joined_text(pieces_of_bytes("\xCE\xB2\xCE\xB1", {"\xCE\xB1"})), "\xCE\xB2");
  // Half a character that a stop follows is not lost.
  EXPECT_EQ(pieces_of_bytes("\xE2\x82ST", {"ST"}), (Texts{"", "", "", "\xE2\x82", ""}));
}

TEST(TextStream, BeginningOfAStopTextThatIsNotCompletedIsGivenOut) {
  EXPECT_EQ(pieces_of_bytes("STOx", {"STOP"}), (Texts{"", "", "", "STOx", ""}));
  EXPECT_EQ(pieces_of_bytes("aSTO", {"STOP"}), (Texts{"a", "", "", "", "STO"}));
  EXPECT_EQ(pieces_of_bytes("aab!", {"ab?"}), (Texts{"", "a", "", "ab!", ""}));  // begins anew inside itself
}

TEST(TextStream, OfOverlappingStopTextsTheOneThatBeginsFirstCounts) {
  const ByteTokenizer bytes;
  TextStream stream(bytes, {"abc", "b"});
  EXPECT_EQ(stream.add('a'), "");
  EXPECT_EQ(stream.add('b'), "");  // not yet decided
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.add('c'), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(pieces_of_bytes("abx", {"abc", "b"}), (Texts{"", "", "a", ""}));
  EXPECT_EQ(pieces_of_bytes("ab", {"abc", "b"}), (Texts{"", "", "a"}));
  EXPECT_EQ(pieces_of_bytes("xab", {"ab", "a"}), (Texts{"x", "", "", ""}));
}

TEST(TextStream, RandomStopTextsEndWhereASearchOfTheWholeTextFindsThem) {
  const auto all = tokenizers();
  int found = 0;
  for (std::uint64_t number = 0; number < 600; ++number) {
    RandomStream stream(3, "stops", {number});
    const Tokenizer& tokenizer = *all[number % all.size()];
    const Ids ids = ids_of(tokenizer, random_text(1000 + number, 60));
    const std::string text = tokenizer.decode(ids);
    Texts stops;
    for (int stop = 0; stop < 3; ++stop) {
      std::string letters;
      for (std::uint32_t letter = 0; letter <= stream.below(4); ++letter) letters += kLetters[stream.below(20)];
      stops.push_back(letters);
    }
    TextStream checked(tokenizer, stops);
    std::string output;
    for (const std::int32_t id : ids) output += checked.add(id);
    output += checked.finish();
    EXPECT_EQ(output, before_first_stop(text, stops)) << number;
    EXPECT_EQ(checked.stopped(), output.size() < text.size()) << number;
    found += checked.stopped() ? 1 : 0;
  }
  EXPECT_GT(found, 100);
  EXPECT_LT(found, 500);
}

TEST(TextStream, EmptyStopTextsAndUnknownIdsAreRefused) {
  const ByteTokenizer bytes;
  EXPECT_NE(message_of<ConfigError>([&] {
              TextStream(bytes, {"a", ""});
            }).find("stop text 2 of 2 is empty"),
            std::string::npos);
  TextStream stream(bytes);
  EXPECT_THROW(stream.add(-1), InputError);
  EXPECT_THROW(stream.add(256), InputError);
  EXPECT_THROW(stream.add(std::int64_t{1} << 32), InputError);
  EXPECT_EQ(stream.add('a'), "a");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.add('b'), "");
}

}  // namespace
}  // namespace routing::text_stream_test
