#include "routing/data/sources/document_files.h"

#include "data/source_support.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <string>
#include <utility>
#include <vector>

namespace routing::document_files_test {
namespace {

using Pieces = std::vector<std::pair<std::string, bool>>;

Pieces pieces_of(std::string_view text, TextCheck check = TextCheck::utf8) {
  Pieces pieces;
  read_in_pieces(text, "book.txt", check,
                 [&](std::string_view piece, bool ends_document) { pieces.emplace_back(piece, ends_document); });
  return pieces;
}

TEST(TextPieces, ShortTextIsOnePieceAndAnEmptyOneToo) {
  EXPECT_EQ(pieces_of("a\nb"), (Pieces{{"a\nb", true}}));
  EXPECT_EQ(pieces_of(""), (Pieces{{"", true}}));
}

TEST(TextPieces, LongTextIsCutBehindTheLastLineEndThatFits) {
  const std::string line = std::string(999, 'x') + "\n";
  std::string text;
  while (text.size() < 3 * kTextPieceBytes) text += line;
  std::string together;
  const Pieces pieces = pieces_of(text);
  ASSERT_EQ(pieces.size(), 4U);
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    EXPECT_EQ(pieces[piece].second, piece == 3);
    EXPECT_LE(pieces[piece].first.size(), kTextPieceBytes);
    EXPECT_EQ(pieces[piece].first.back(), '\n');
    together += pieces[piece].first;
  }
  EXPECT_EQ(pieces[0].first.size(), kTextPieceBytes / 1000 * 1000);
  EXPECT_EQ(together, text);
}

TEST(TextPieces, LineEndAtTheLastByteThatFitsIsFound) {
  const std::string first = std::string(kTextPieceBytes - 1, 'x') + "\n";
  EXPECT_EQ(pieces_of(first + "rest"), (Pieces{{first, false}, {"rest", true}}));
}

TEST(TextPieces, LineThatIsLongerThanAPieceStaysWhole) {
  const std::string line = std::string(2 * kTextPieceBytes, 'x') + "\n";
  EXPECT_EQ(pieces_of(line + "rest"), (Pieces{{line, false}, {"rest", true}}));
  const std::string without_end(2 * kTextPieceBytes, 'x');
  EXPECT_EQ(pieces_of(without_end), (Pieces{{without_end, true}}));
}

TEST(TextPieces, WhatIsNotUtf8IsRefusedWithItsPlaceInTheFileUnlessAnyBytesMayBe) {
  const std::string first = std::string(kTextPieceBytes - 1, 'x') + "\n";
  const std::string text = first + "caf\xe9\n";
  EXPECT_EQ(message_of<FileError>([&] { pieces_of(text); }),
            "book.txt: byte 1048579 is not UTF-8; convert the file, or read it as bytes with data.tokens=bytes");
  EXPECT_EQ(pieces_of(text, TextCheck::none), (Pieces{{first, false}, {"caf\xe9\n", true}}));
}

class DocumentFilesTest : public TemporaryFolderTest {};

TEST_F(DocumentFilesTest, EveryFileIsADocumentAlsoAnEmptyOne) {
  const auto source =
      source_of_documents({.format = "text",
                           .parts = {{"train", {write("b", "one\n"), write("a", ""), write("c", "three")}}},
                           .missing = ""},
                          TextCheck::utf8);
  EXPECT_EQ(documents_of(*source, "train"), (std::vector<std::string>{"one\n", "", "three"}));
}

TEST_F(DocumentFilesTest, PartThatIsNotThereIsRefusedWithThoseThatAre) {
  const auto source = source_of_documents({.format = "wikitext",
                                           .parts = {{"valid", {write("b", "one\n")}}, {"test", {write("c", "two\n")}}},
                                           .missing = ""},
                                          TextCheck::utf8);
  EXPECT_EQ(message_of<ConfigError>([&] { documents_of(*source, "train"); }),
            "the wikitext data have no part train, only valid, test");
}

TEST_F(DocumentFilesTest, FileThatIsGoneIsAnErrorWithItsPath) {
  const auto source = source_of_documents({.format = "text", .parts = {{"train", {folder() / "gone"}}}, .missing = ""},
                                          TextCheck::utf8);
  EXPECT_NE(message_of<FileError>([&] { documents_of(*source, "train"); }).find((folder() / "gone").string() + ": "),
            std::string::npos);
}

TEST_F(DocumentFilesTest, TextFilesAreSortedAndNothingElseIsAmongThem) {
  for (const char* name : {"b.txt", "a.txt", "10.txt", "notes.md", ".hidden.txt", "txt"}) write(name, "x");
  std::filesystem::create_directory(folder() / "folder.txt");
  EXPECT_EQ(text_files_in(folder()), (std::vector{folder() / "10.txt", folder() / "a.txt", folder() / "b.txt"}));
}

TEST_F(DocumentFilesTest, FolderMustBeOne) {
  EXPECT_NO_THROW(require_folder(folder(), "books"));
  EXPECT_EQ(message_of<FileError>([&] { require_folder(folder() / "gone", "books"); }),
            (folder() / "gone").string() + ": there is no such folder; name the one with books");
  EXPECT_EQ(message_of<FileError>([&] { require_folder(write("file", "x"), "books"); }),
            (folder() / "file").string() + ": is not a folder; name the one with books");
}

}  // namespace
}  // namespace routing::document_files_test
