#include "routing/data/tokenizers/word_vocabulary.h"

#include "data/source_support.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"
#include "routing/data/sources/wikitext.h"

#include <array>
#include <string>
#include <vector>

namespace routing::word_vocabulary_test {
namespace {

using Ids = std::vector<std::int32_t>;
using Words = std::vector<std::string>;

std::unique_ptr<WordVocabulary> vocabulary_of(std::string_view text) {
  WordCounter counter;
  counter.add(text);
  return counter.vocabulary();
}

Ids ids_of(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

TEST(WordCounter, WordsComeByFrequencyThenByFirstAppearance) {
  WordCounter counter;
  counter.add(" b a \n");
  counter.add(" \n c a <unk> \n");
  counter.add(" c d");
  EXPECT_EQ(counter.vocabulary()->words(), (Words{"<eos>", "a", "c", "b", "<unk>", "d"}));
  EXPECT_EQ(counter.types(), 5);
  EXPECT_EQ(counter.tokens(), 10);
}

TEST(WordCounter, UnknownWordIsAddedWhereTheTextHasNone) {
  const auto vocabulary = vocabulary_of("x y\n");
  EXPECT_EQ(vocabulary->words(), (Words{"<eos>", "x", "y", "<unk>"}));
  EXPECT_EQ(vocabulary->unknown_id(), 3);
  EXPECT_EQ(vocabulary_of("")->words(), (Words{"<eos>", "<unk>"}));
}

TEST(WordCounter, WordsSeenOnceTeachWhatUnknownWordsAreUnlessTheTextDoes) {
  WordCounter counter;
  counter.add("b a a once\n b twice\n");
  counter.add("a other\n");
  EXPECT_EQ(counter.vocabulary(WordsSeenOnce::unknown)->words(), (Words{"<eos>", "a", "b", "<unk>"}));
  EXPECT_EQ(counter.vocabulary()->words(), (Words{"<eos>", "a", "b", "once", "twice", "other", "<unk>"}));
  counter.add("<unk>\n");
  EXPECT_EQ(counter.vocabulary(WordsSeenOnce::unknown)->words(),
            (Words{"<eos>", "a", "b", "once", "twice", "other", "<unk>"}));
}

TEST(WordVocabularyTest, LineEndsAreTokensAndUnknownWordsBecomeUnk) {
  const auto vocabulary = vocabulary_of(" b a \n a <unk> \n");  // a 1, b 2, <unk> 3
  EXPECT_EQ(ids_of(*vocabulary, " \n b a new \n\n<unk>"), (Ids{0, 2, 1, 3, 0, 0, 3}));
  EXPECT_EQ(ids_of(*vocabulary, ""), Ids{});
  EXPECT_EQ(vocabulary->vocabulary_size(), 4);
  EXPECT_EQ(vocabulary->end_id(), 0);
  EXPECT_EQ(vocabulary->kind(), "words");
  EXPECT_EQ(vocabulary->id_of("b"), 2);
  EXPECT_EQ(vocabulary->id_of("new"), 3);
}

TEST(WordVocabularyTest, EveryAsciiSpaceSeparatesAndOthersDoNot) {
  const auto vocabulary = vocabulary_of(
      "a\tb\vc\fd\re\xc2\xa0"
      "f");
  EXPECT_EQ(vocabulary->words(), (Words{"<eos>", "a", "b", "c", "d",
                                        "e\xc2\xa0"
                                        "f",
                                        "<unk>"}));
}

TEST(WordVocabularyTest, IdsAreAppended) {
  Ids ids{7};
  vocabulary_of("a")->encode("a\n", ids);
  EXPECT_EQ(ids, (Ids{7, 1, 0}));
}

TEST(WordVocabularyTest, EndOfLineWrittenAsAWordIsUnknown) {
  const auto vocabulary = vocabulary_of(" a <eos> <eos> \n");
  EXPECT_EQ(vocabulary->words(), (Words{"<eos>", "a", "<unk>"}));
  EXPECT_EQ(ids_of(*vocabulary, " a <eos> \n"), (Ids{1, 2, 0}));
}

TEST(WordVocabularyTest, DecodingSetsSpacesAsWikitextDoes) {
  const auto vocabulary = vocabulary_of(" b a \n a <unk> \n");
  const std::string text = " \n a b <unk> \n \n a";
  EXPECT_EQ(vocabulary->decode(ids_of(*vocabulary, text)), text);
  EXPECT_EQ(vocabulary->decode(ids_of(*vocabulary, "a  b\n\nnew")), " a b \n \n <unk>");
  EXPECT_EQ(message_of<InputError>([&] { vocabulary->decode(Ids{4}); }), "there is no token 4; ids are 0 … 3");
  EXPECT_THROW(vocabulary->decode(Ids{-1}), InputError);
}

TEST(WordVocabularyTest, HashTellsVocabulariesApart) {
  EXPECT_EQ(vocabulary_of("a b")->hash(), vocabulary_of("a\nb")->hash());
  EXPECT_NE(vocabulary_of("a b")->hash(), vocabulary_of("b a")->hash());
  EXPECT_NE(vocabulary_of("ab c")->hash(), vocabulary_of("a bc")->hash());
  EXPECT_EQ(vocabulary_of("a b")->hash().size(), 16U);
}

TEST(WordVocabularyTest, ListsThatAreNoVocabularyAreRefused) {
  EXPECT_EQ(message_of<InputError>([&] {
              WordVocabulary(Words{"<eos>", "a"});
            }),
            "words: <unk> is not among the 2; a vocabulary has one word per line, <eos> first, <unk> among them, none "
            "twice");
  EXPECT_THROW(WordVocabulary(Words{}), InputError);
}

class WordFileTest : public TemporaryFolderTest {
 protected:
  std::string message_for(const std::string& text) const {
    const auto path = write("words.txt", text);
    const std::string message = message_of<FileError>([&] { WordVocabulary::load(path); });
    EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
    const std::string rule = "; a vocabulary has one word per line, <eos> first, <unk> among them, none twice";
    EXPECT_TRUE(message.ends_with(rule)) << message;
    return message.substr(path.string().size() + 2, message.size() - path.string().size() - 2 - rule.size());
  }
};

TEST_F(WordFileTest, FileHasOneWordALineAndGivesTheSameTokenizer) {
  const auto vocabulary = vocabulary_of(" caf\xc3\xa9 a a \n");
  vocabulary->save(folder() / "words.txt");
  EXPECT_EQ(contents_of(folder() / "words.txt"), "<eos>\na\ncaf\xc3\xa9\n<unk>\n");
  const auto loaded = WordVocabulary::load(folder() / "words.txt");
  EXPECT_EQ(loaded->words(), vocabulary->words());
  EXPECT_EQ(loaded->hash(), vocabulary->hash());
  EXPECT_EQ(WordVocabulary::load(write("no_end.txt", "<eos>\na\ncaf\xc3\xa9\n<unk>"))->hash(), vocabulary->hash());
}

TEST_F(WordFileTest, WhatIsWrongIsSaidWithItsLine) {
  EXPECT_EQ(message_for(""), "has 0 bytes");
  EXPECT_EQ(message_for("a\n<eos>\n<unk>\n"), "line 1 is 'a', not <eos>");
  EXPECT_EQ(message_for("<eos>\na\nb\na\n<unk>\n"), "lines 2 and 4 are both 'a'");
  EXPECT_EQ(message_for("<eos>\na\n"), "<unk> is not among the 2");
  EXPECT_EQ(message_for("<eos>\n<unk>\n\na\n"), "line 3 is empty");
  EXPECT_EQ(message_for("<eos>\n<unk>\na b\n"), "line 3 has white space in it");
  EXPECT_EQ(message_for("<eos>\n<unk>\na\r\n"), "line 3 has white space in it");
  EXPECT_THROW(WordVocabulary::load(folder() / "gone"), FileError);
}

TEST(WordVocabularyTest, WikitextHasItsPublishedCountsAndComesBackByteForByte) {
  if (!real_data("")) GTEST_SKIP() << "ROUTING_TEST_DATA is not set";
  const auto source = open_wikitext(*real_data("wikitext-2"));
  WordCounter counter;
  source->read("train", [&](std::string_view text, bool) { counter.add(text); });
  const auto vocabulary = counter.vocabulary();
  EXPECT_EQ(vocabulary->vocabulary_size(), 33278);
  EXPECT_EQ(counter.tokens(), 2088628);
  const std::array<std::size_t, 3> tokens{2088628, 217646, 245569};
  for (std::size_t part = 0; part < 3; ++part) {
    const std::string name = source->facts().parts[part].name;
    Ids ids;
    source->read(name, [&](std::string_view text, bool) { vocabulary->encode(text, ids); });
    EXPECT_EQ(ids.size(), tokens[part]) << name;
    EXPECT_TRUE(vocabulary->decode(ids) == documents_of(*source, name).front()) << name;
  }
}

TEST(WordVocabularyTest, LargerWikitextHasItsPublishedCountsAndComesBackByteForByte) {
  if (!real_data("")) GTEST_SKIP() << "ROUTING_TEST_DATA is not set";
  // Its train file is not at hand: the vocabulary is that of the two parts.
  const auto source = open_wikitext(*real_data("wikitext-103"));
  WordCounter counter;
  for (const char* part : {"valid", "test"}) {
    source->read(part, [&](std::string_view text, bool) { counter.add(text); });
  }
  const auto vocabulary = counter.vocabulary();
  Ids valid;
  Ids test;
  source->read("valid", [&](std::string_view text, bool) { vocabulary->encode(text, valid); });
  source->read("test", [&](std::string_view text, bool) { vocabulary->encode(text, test); });
  EXPECT_EQ(valid.size(), 217646U);
  EXPECT_EQ(test.size(), 245569U);
  EXPECT_TRUE(vocabulary->decode(valid) == documents_of(*source, "valid").front());
  EXPECT_TRUE(vocabulary->decode(test) == documents_of(*source, "test").front());
}

}  // namespace
}  // namespace routing::word_vocabulary_test
