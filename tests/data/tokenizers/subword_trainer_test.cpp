#include "routing/data/tokenizers/subword_trainer.h"

#include "data/hostile_texts.h"
#include "data/source_support.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"
#include "routing/data/sources/pg19.h"
#include "routing/data/tokenizers/subwords_library.h"
#include "routing/data/tokenizers/tokenizers.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace routing::subword_trainer_test {
namespace {

using Ids = std::vector<std::int32_t>;

Ids ids_of(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::string some_text() {
  std::string text;
  for (int line = 0; line < 300; ++line) {
    text += "the cat number " + std::to_string(line * line) + " sat on  the mat\n    and the dog\tran away\n\n";
  }
  return text;
}

std::unique_ptr<Subwords> trained(const std::string& text, std::int64_t pieces = 400) {
  SubwordTrainer trainer({.vocabulary_size = pieces});
  trainer.add(text);
  return trainer.train();
}

TEST(SubwordTrainerTest, ModelHasTheAgreedIdsAndIsExact) {
  const auto subwords = trained(some_text());
  EXPECT_EQ(subwords->vocabulary_size(), 400);
  EXPECT_TRUE(subwords->exact()) << subwords->why_not_exact();
  EXPECT_EQ(subwords->end_id(), 0);
  EXPECT_EQ(subwords->decode(Ids{0}), "");
  EXPECT_EQ(subwords->decode(Ids{1}), " \xE2\x81\x87 ");
  EXPECT_EQ(ids_of(*subwords, "\n"), Ids{2});
  EXPECT_EQ(ids_of(*subwords, "\t"), Ids{3 + '\t'});
  EXPECT_EQ(ids_of(*subwords, " the").size(), 1U);
}

TEST(SubwordTrainerTest, HostileTextsComeBackByteForByte) {
  const auto subwords = trained(some_text());
  std::string together;
  for (const std::string& text : hostile_texts()) {
    const Ids ids = ids_of(*subwords, text);
    EXPECT_EQ(subwords->decode(ids), text);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 0) << text;
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 0) << text;
    together += text;
  }
  EXPECT_EQ(subwords->decode(ids_of(*subwords, together)), together);
}

TEST(SubwordTrainerTest, HostileTextsCanBeLearntFrom) {
  std::string together;
  for (const std::string& text : hostile_texts()) together += text + "\n";
  const auto subwords = trained(together + some_text());
  for (const std::string& text : hostile_texts()) EXPECT_EQ(subwords->decode(ids_of(*subwords, text)), text);
  // A line with a tab, NUL or mark of SentencePiece's own is not lost for learning.
  const auto tabs = trained(
      "frog\tfrog\r\nfrog\xE2\x96\x81"
      "frog\nfrog\xE2\x96\x85"
      "frog" +
      std::string("\0frog", 5));
  EXPECT_EQ(ids_of(*tabs, "frog").size(), 1U);
}

TEST(SubwordTrainerTest, RandomCharactersComeBackByteForByte) {
  const auto subwords = trained(some_text());
  std::mt19937 random(1);
  const auto draw = [&](std::size_t limit) { return static_cast<unsigned>(random() % limit); };
  const auto append = [](std::string& text, unsigned code) {
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += {static_cast<char>(0xC0U | code >> 6U), static_cast<char>(0x80U | (code & 0x3FU))};
    } else if (code < 0x10000) {
      text += {static_cast<char>(0xE0U | code >> 12U), static_cast<char>(0x80U | (code >> 6U & 0x3FU)),
               static_cast<char>(0x80U | (code & 0x3FU))};
    } else {
      text += {static_cast<char>(0xF0U | code >> 18U), static_cast<char>(0x80U | (code >> 12U & 0x3FU)),
               static_cast<char>(0x80U | (code >> 6U & 0x3FU)), static_cast<char>(0x80U | (code & 0x3FU))};
    }
  };
  constexpr unsigned kLimits[] = {0x21, 0x80, 0x800, 0x2600, 0x10000, 0x110000};
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text;
    for (unsigned length = draw(40); length > 0; --length) {
      unsigned code = draw(kLimits[draw(std::size(kLimits))]);
      if (code >= 0xD800 && code < 0xE000) code = ' ';
      append(text, draw(8) == 0 ? 0x2581 : code);
    }
    ASSERT_EQ(subwords->decode(ids_of(*subwords, text)), text) << trial;
  }
}

TEST(SubwordTrainerTest, WhereATextIsCutBehindALineEndChangesNothing) {
  const std::string text = some_text();
  const auto subwords = trained(text);
  SubwordTrainer in_lines({.vocabulary_size = 400});
  Ids ids;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    in_lines.add(text.substr(begin, end - begin));
    subwords->encode(text.substr(begin, end - begin), ids);
    begin = end;
  }
  EXPECT_EQ(in_lines.train()->hash(), subwords->hash());
  EXPECT_EQ(ids, ids_of(*subwords, text));
}

TEST(SubwordTrainerTest, EqualTextsGiveEqualModelsAndOthersDoNot) {
  EXPECT_EQ(trained(some_text())->hash(), trained(some_text())->hash());
  EXPECT_NE(trained(some_text())->hash(), trained(some_text() + "zebra zebra zebra\n")->hash());
  EXPECT_NE(trained(some_text())->hash(), trained(some_text(), 401)->hash());
}

TEST(SubwordTrainerTest, SampleIsBoundedEvenAndAtLeastHalf) {
  SubwordTrainer trainer({.vocabulary_size = 1000, .sample_bytes = 40000});
  // Lines of the first, second, third and fourth quarter have words of their own.
  const std::string words[] = {"apple", "birch", "cedar", "daisy"};
  for (const std::string& word : words) {
    for (int line = 0; line < 5000; ++line) {
      trainer.add("a " + word + "\n");
      ASSERT_LE(trainer.sampled_bytes(), 40000U);
    }
  }
  EXPECT_GE(trainer.sampled_bytes(), 17000U);
  const auto subwords = trainer.train();
  for (const std::string& word : words) EXPECT_EQ(ids_of(*subwords, " " + word).size(), 1U) << word;
}

TEST(SubwordTrainerTest, LinesOfAnyLengthAreLearntFrom) {
  std::string line;
  for (int word = 0; word < 5000; ++word) line += " frog";
  EXPECT_EQ(ids_of(*trained(line), " frog").size(), 1U);
  std::string without_spaces;
  for (int letter = 0; letter < 5000; ++letter) without_spaces += "\xE6\xBC\xA2";  // three bytes per character
  SubwordTrainer trainer({.vocabulary_size = 400});
  trainer.add(without_spaces);
  EXPECT_EQ(trainer.sampled_bytes(), 15000U);
  EXPECT_EQ(ids_of(*trainer.train(), "\xE6\xBC\xA2").size(), 1U);
}

TEST(SubwordTrainerTest, ShortTextsGiveFewerPieces) {
  for (const std::string text : {"a", "aa", " ", "1 2", "\xE6\xBC\xA2", "a\nb\n"}) {
    const auto subwords = trained(text, 32000);
    EXPECT_LT(subwords->vocabulary_size(), 300) << text;
    EXPECT_EQ(subwords->decode(ids_of(*subwords, text)), text);
  }
}

TEST(SubwordTrainerTest, WhatCannotBeLearntIsRefused) {
  EXPECT_EQ(message_of<ConfigError>([] { SubwordTrainer({.vocabulary_size = 259}); }),
            "data.vocabulary_size is 259, but subwords need more than the 259 pieces for bytes and ends, and ids of 32 "
            "bits");
  for (const std::string text : {"", "\n\n", "\t\r\n"}) {
    EXPECT_EQ(message_of<ConfigError>([&] { trained(text); }),
              "there is no text to learn subwords from; name a text, or use data.tokens=bytes");
  }
  const std::string message = message_of<ConfigError>([] { trained(some_text(), 265); });
  EXPECT_TRUE(message.starts_with("SentencePiece cannot make 265 pieces of this text: ")) << message;
  EXPECT_TRUE(message.ends_with("; change data.vocabulary_size")) << message;
}

TEST(SubwordTrainerTest, TrainingAndEncodingPrintNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ids_of(*trained(some_text()), "the cat \xE6\xBC\xA2");
  EXPECT_THROW(trained(some_text(), 265), ConfigError);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

class SubwordTrainerFileTest : public TemporaryFolderTest {};

TEST_F(SubwordTrainerFileTest, ModelComesBackFromItsFile) {
  const auto subwords = trained(some_text());
  subwords->save(folder() / "text.model");
  const auto loaded = load_tokenizer("subwords", folder() / "text.model");
  EXPECT_EQ(loaded->kind(), "subwords");
  EXPECT_EQ(loaded->hash(), subwords->hash());
  EXPECT_EQ(ids_of(*loaded, some_text()), ids_of(*subwords, some_text()));
}

TEST_F(SubwordTrainerFileTest, RealBooksComeBackByteForByteWithTheIdsOfSentencePiece) {
  if (!real_data("")) GTEST_SKIP() << "ROUTING_TEST_DATA is not set";
  const auto source = open_pg19(*real_data("pg19"));
  SubwordTrainer trainer({.vocabulary_size = 4000, .sample_bytes = 2'000'000});
  source->read("train", [&](std::string_view text, bool) { trainer.add(text); });
  const auto subwords = trainer.train();
  EXPECT_EQ(subwords->vocabulary_size(), 4000);
  subwords->save(folder() / "books.model");
  const LoadedSubwords sentencepiece(contents_of(folder() / "books.model"));
  for (const char* part : {"valid", "test"}) {
    for (const std::string& book : documents_of(*source, part)) {
      const Ids ids = ids_of(*subwords, book);
      EXPECT_TRUE(subwords->decode(ids) == book);
      EXPECT_LT(ids.size(), book.size() / 2);
      Ids whole_lines;
      for (std::size_t begin = 0; begin < book.size();) {
        const std::size_t end = std::min(book.find('\n', begin), book.size() - 1) + 1;
        sentencepiece.encode(std::string_view(book).substr(begin, end - begin), whole_lines);
        begin = end;
      }
      EXPECT_TRUE(ids == whole_lines);
    }
  }
}

}  // namespace
}  // namespace routing::subword_trainer_test
