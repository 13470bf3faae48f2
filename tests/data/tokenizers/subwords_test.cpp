#include "routing/data/tokenizers/subwords.h"

#include "data/source_support.h"
#include "data/temporary_folder.h"
#include "data/tokenizers/model_writer.h"
#include "routing/core/error.h"
#include "routing/data/tokenizers/subwords_library.h"

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace routing::subwords_test {
namespace {

using Ids = std::vector<std::int32_t>;

const std::string kMark = "\xE2\x96\x81";

Ids ids_of(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

// Bytes are ids 3 … 258; </s>, which is 2 in the file, is 0, and <unk> is 2. Pieces are merged in the order of the
// list.
Subwords small() {
  return Subwords(written(small_exact_model({"a", "b", kMark, "ab", kMark + "ab", kMark + kMark, "aa"})));
}
constexpr std::int32_t kByte = 3;
constexpr std::int32_t kA = 259;
constexpr std::int32_t kB = 260;
constexpr std::int32_t kSpace = 261;
constexpr std::int32_t kAb = 262;
constexpr std::int32_t kSpaceAb = 263;
constexpr std::int32_t kTwoSpaces = 264;
constexpr std::int32_t kAa = 265;

TEST(SubwordsTest, HandWorkedTextBecomesItsPieces) {
  const Subwords subwords = small();
  EXPECT_EQ(ids_of(subwords, "ab"), Ids{kAb});
  EXPECT_EQ(ids_of(subwords, "ab ab"), (Ids{kAb, kSpaceAb}));
  EXPECT_EQ(ids_of(subwords, "aab"), (Ids{kA, kAb}));  // "ab" stands before "aa"
  EXPECT_EQ(ids_of(subwords, "aaa"), (Ids{kAa, kA}));
  EXPECT_EQ(ids_of(subwords, "b a"), (Ids{kB, kSpace, kA}));
  EXPECT_EQ(ids_of(subwords, "   "), (Ids{kTwoSpaces, kSpace}));
  EXPECT_EQ(ids_of(subwords, "a\nc\xC3\xA9"), (Ids{kA, kByte + '\n', kByte + 'c', kByte + 0xC3, kByte + 0xA9}));
  EXPECT_EQ(ids_of(subwords, "a" + kMark + "b"), (Ids{kA, kByte + 0xE2, kByte + 0x96, kByte + 0x81, kB}));
  EXPECT_EQ(ids_of(subwords, ""), Ids{});
  Ids ids{9};
  subwords.encode("b", ids);
  EXPECT_EQ(ids, (Ids{9, kB}));
}

TEST(SubwordsTest, FactsAreThoseOfTheModel) {
  const Subwords subwords = small();
  EXPECT_EQ(subwords.kind(), "subwords");
  EXPECT_EQ(subwords.vocabulary_size(), 266);
  EXPECT_EQ(subwords.end_id(), 0);
  EXPECT_TRUE(subwords.exact()) << subwords.why_not_exact();
}

TEST(SubwordsTest, EndPieceIsZeroAndChangesPlacesWithPieceZero) {
  const Subwords subwords = small();
  EXPECT_EQ(subwords.decode(Ids{kA, 0, 1, kB}), "ab");   // controls are nothing
  EXPECT_EQ(subwords.decode(Ids{2}), " \xE2\x81\x87 ");  // <unk>
  SentencePieceModel model = small_exact_model({"a"});
  std::swap(model.pieces[0], model.pieces[259]);  // "a" is piece 0, so it becomes 2
  const Subwords swapped(written(model));
  EXPECT_EQ(ids_of(swapped, "aa"), (Ids{2, 2}));
  EXPECT_EQ(swapped.decode(Ids{2, 0, 2}), "aa");
}

TEST(SubwordsTest, SpaceMarkIsWrittenRightWhereItsByteIsPieceZero) {
  SentencePieceModel model = small_exact_model({});
  std::swap(model.pieces[0], model.pieces[3 + 0x96]);
  const Subwords subwords(written(model));
  EXPECT_EQ(ids_of(subwords, kMark), (Ids{3 + 0xE2, 2, 3 + 0x81}));
  EXPECT_EQ(subwords.decode(ids_of(subwords, kMark)), kMark);
}

TEST(SubwordsTest, LettersOfSpecialPiecesAreLetters) {
  const Subwords subwords = small();
  for (const std::string text : {"</s>", "<s>", "<unk>", "<0x0A>"}) {
    const Ids ids = ids_of(subwords, text);
    EXPECT_EQ(ids.size(), text.size());
    for (const std::int32_t id : ids) EXPECT_GE(id, 3) << text;
    EXPECT_EQ(subwords.decode(ids), text);
  }
}

TEST(SubwordsTest, PiecesOverWordsAreFoundWhereTheModelHasThem) {
  const Subwords subwords(written(small_exact_model({"a", kMark, "a" + kMark, "a" + kMark + "a"})));
  EXPECT_TRUE(subwords.exact());
  EXPECT_EQ(ids_of(subwords, "a a"), Ids{262});
  EXPECT_EQ(ids_of(subwords, "a\na a"), (Ids{259, kByte + '\n', 262}));
  const std::string text = "a a" + kMark + "a  a\n";
  EXPECT_EQ(subwords.decode(ids_of(subwords, text)), text);
}

TEST(SubwordsTest, LinesLongerThanAUnitComeBack) {
  const Subwords by_words = small();
  const Subwords by_lines(written(small_exact_model({"a", kMark, "a" + kMark, "a" + kMark + "a"})));
  std::string words;
  for (int word = 0; word < 30000; ++word) words += " \xC3\xA9" + std::to_string(word);
  std::string letters;
  for (int letter = 0; letter < 70000; ++letter) letters += "\xE2\x82\xAC";  // three bytes: does not divide the unit
  for (const std::string& text : {words, letters, std::string(200000, ' '), std::string(65536, 'a'),
                                  std::string(65537, 'a'), std::string(65534, 'a') + kMark}) {
    EXPECT_TRUE(by_words.decode(ids_of(by_words, text)) == text);
    EXPECT_TRUE(by_lines.decode(ids_of(by_lines, text)) == text);
  }
}

TEST(SubwordsTest, WhatIsNotUtf8IsRefused) {
  EXPECT_EQ(message_of<InputError>([] { ids_of(small(), "ab\xff"); }),
            "byte 2 of the text is not UTF-8; subwords need UTF-8");
}

TEST(SubwordsTest, IdsThatAreNoneAreRefused) {
  EXPECT_EQ(message_of<InputError>([] { small().decode(Ids{266}); }), "there is no token 266; ids are 0 … 265");
  EXPECT_THROW(small().decode(Ids{-1}), InputError);
}

TEST(SubwordsTest, SeveralThreadsGetTheSameIds) {
  const Subwords subwords = small();
  std::string text;
  for (int word = 0; word < 2000; ++word) text += "ab" + std::to_string(word % 700) + " ";
  const Ids expected = ids_of(subwords, text);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  for (Ids& ids : found) threads.emplace_back([&] { subwords.encode(text, ids); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_EQ(ids, expected);
}

TEST(SubwordsTest, ModelsThatLoseSomethingSaySo) {
  const auto reason = [](auto change) {
    SentencePieceModel model = small_exact_model({"a", kMark});
    change(model);
    const Subwords subwords(written(model));
    EXPECT_FALSE(subwords.exact());
    return subwords.why_not_exact();
  };
  EXPECT_EQ(reason([](auto& model) { model.adds_space = true; }), "puts a space before every line (add_dummy_prefix)");
  EXPECT_EQ(reason([](auto& model) { model.removes_spaces = true; }), "drops spaces (remove_extra_whitespaces)");
  EXPECT_EQ(reason([](auto& model) { model.marks_spaces = false; }), "does not mark spaces (escape_whitespaces)");
  EXPECT_EQ(reason([](auto& model) {
              model.pieces.erase(model.pieces.begin() + 3, model.pieces.begin() + 259);
              model.byte_fallback = false;
              model.adds_space = true;
            }),
            "puts a space before every line (add_dummy_prefix), has no pieces for single bytes (byte_fallback)");
}

TEST(SubwordsTest, ModelThatLosesSomethingGivesWhatSentencePieceGivesEachLine) {
  SentencePieceModel model = small_exact_model({"a", kMark, kMark + "a"});
  model.adds_space = true;
  model.removes_spaces = true;
  const Subwords subwords(written(model));
  EXPECT_EQ(ids_of(subwords, "a  a"), (Ids{261, 261}));
  EXPECT_EQ(ids_of(subwords, "a\na"), (Ids{261, kByte + '\n', 261}));
}

class SubwordFileTest : public TemporaryFolderTest {};

TEST_F(SubwordFileTest, SavedModelIsTheSameTokenizer) {
  const Subwords subwords = small();
  subwords.save(folder() / "small.model");
  const auto loaded = Subwords::load(folder() / "small.model");
  EXPECT_EQ(loaded->hash(), subwords.hash());
  EXPECT_EQ(loaded->hash().size(), 16U);
  EXPECT_EQ(ids_of(*loaded, "ab ab"), (Ids{kAb, kSpaceAb}));
  EXPECT_NE(Subwords(written(small_exact_model({"a"}))).hash(), subwords.hash());
}

TEST_F(SubwordFileTest, FilesThatAreNoModelAreRefusedInOneLineAndNothingIsPrinted) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const auto message = [&](const std::string& bytes) {
    const auto path = write("x.model", bytes);
    const std::string text = message_of<FileError>([&] { Subwords::load(path); });
    EXPECT_TRUE(text.starts_with(path.string() + ": ")) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text.substr(path.string().size() + 2);
  };
  EXPECT_EQ(message("not a model"),
            "these 11 bytes are no SentencePiece model; name a .model file that SentencePiece wrote");
  EXPECT_EQ(message(""), "these 0 bytes are no SentencePiece model; name a .model file that SentencePiece wrote");
  EXPECT_EQ(message(bytes_field(1, bytes_field(1, "a"))),
            "the SentencePiece model has no control piece such as </s> that could end a document; train it with one");
  // Two pieces of one name: of the right form, but SentencePiece does not take it.
  EXPECT_TRUE(message(written(small_exact_model({"a", "a"}))).starts_with("SentencePiece refuses it: "));
  EXPECT_THROW(Subwords::load(folder() / "gone.model"), FileError);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(SubwordsLibrary, PluginIsLookedForBesideTheProgramAndAbove) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_EQ(subwords_plugin_places(), (std::vector<std::filesystem::path>{
                                          folder / "routing_subwords.so", folder.parent_path() / "routing_subwords.so",
                                          folder.parent_path() / "lib/routing/routing_subwords.so"}));
}

// A copy of this program far from the plug-in runs the case of the environment variable.
TEST_F(SubwordFileTest, PluginThatIsNotThereIsSaidWithThePlacesLookedAt) {
  constexpr const char* kCopy = "ROUTING_TEST_SUBWORDS_COPY";
  if (std::getenv(kCopy) != nullptr) {
    std::puts(message_of<FileError>([] { small(); }).c_str());
    return;
  }
  std::filesystem::create_directories(folder() / "usr/bin");
  const auto copy = folder() / "usr/bin/copy";
  std::filesystem::copy_file("/proc/self/exe", copy);
  const auto run = [&] {
    const std::string command =
        std::string(kCopy) + "=1 '" + copy.string() + "' --gtest_filter=SubwordFileTest.PluginThatIsNotThere* 2>&1";
    FILE* const output = ::popen(command.c_str(), "r");
    std::string text;
    for (int letter = 0; (letter = std::fgetc(output)) != EOF;) text += static_cast<char>(letter);
    ::pclose(output);
    return text;
  };
  const std::string usr = (folder() / "usr").string();
  std::string text = run();
  EXPECT_NE(text.find("routing_subwords.so: is not in any of " + usr + "/bin, " + usr + ", " + usr +
                      "/lib/routing; subwords need it: put it beside the program, or build again\n"),
            std::string::npos)
      << text;
  write("usr/bin/routing_subwords.so", "no library");
  text = run();
  EXPECT_NE(text.find(usr + "/bin/routing_subwords.so: cannot be loaded: "), std::string::npos) << text;
}

}  // namespace
}  // namespace routing::subwords_test
