#include "routing/data/sources/text_files.h"

#include "data/source_support.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <string>
#include <sys/stat.h>
#include <vector>

namespace routing::text_files_test {
namespace {

class TextFilesTest : public TemporaryFolderTest {
 protected:
  std::string message() const {
    return message_of<FileError>([&] { open_text(folder()); });
  }
};

TEST_F(TextFilesTest, FileIsOnePartOfOneDocument) {
  const auto source = open_text(write("any.text", "a caf\xc3\xa9\nb"));
  EXPECT_EQ(source->facts().format, "text");
  EXPECT_EQ(source->facts().missing, "");
  ASSERT_EQ(source->facts().parts.size(), 1U);
  EXPECT_EQ(source->facts().parts[0].name, "train");
  EXPECT_EQ(documents_of(*source, "train"), std::vector<std::string>{"a caf\xc3\xa9\nb"});
}

TEST_F(TextFilesTest, CompressedFileIsWhatItHolds) {
  // "abc" in a stored block; see byte_corpus_test.cpp.
  const std::string member = std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + std::string("\x01\x03\0\xfc\xff", 5) +
                             "abc" + std::string("\xc2\x41\x24\x35\x03\0\0\0", 8);
  EXPECT_EQ(documents_of(*open_text(write("text.gz", member)), "train"), std::vector<std::string>{"abc"});
}

TEST_F(TextFilesTest, FolderOfTextsIsOnePartWithADocumentAFile) {
  write("b.txt", "two");
  write("a.txt", "one\n");
  std::filesystem::create_directories(folder() / "below");
  write("below/c.md", "three");
  const auto source = open_text(folder());
  ASSERT_EQ(source->facts().parts.size(), 1U);
  EXPECT_EQ(documents_of(*source, "train"), (std::vector<std::string>{"one\n", "two", "three"}));
  EXPECT_EQ(source->facts().note, "");
  write("d.bin", std::string("x\0", 2));
  EXPECT_EQ(open_text(folder())->facts().note, "1 binary file is left out");
  EXPECT_EQ(documents_of(*open_text(folder() / "**/*.md"), "train"), std::vector<std::string>{"three"});
  EXPECT_EQ(message_of<FileError>([&] { open_text(folder() / "*.c"); }),
            (folder() / "*.c").string() +
                ": no text has such a name; * is part of a name, ** any folders, as in 'src/**/*.c'");
}

TEST_F(TextFilesTest, FilesNamedAfterPartsAreParts) {
  write("valid.txt", "v");
  write("train.txt", "t");
  auto source = open_text(folder());
  ASSERT_EQ(source->facts().parts.size(), 2U);
  EXPECT_EQ(source->facts().parts[0].name, "train");
  EXPECT_EQ(source->facts().parts[1].name, "valid");
  write("test.txt", "e");
  source = open_text(folder());
  EXPECT_EQ(documents_of(*source, "train"), std::vector<std::string>{"t"});
  EXPECT_EQ(documents_of(*source, "valid"), std::vector<std::string>{"v"});
  EXPECT_EQ(documents_of(*source, "test"), std::vector<std::string>{"e"});
  EXPECT_EQ(source->facts().missing, "");
}

// Before, these were joined in the order of the alphabet and cut by shares: test text landed in train.
TEST_F(TextFilesTest, PartsAnywhereInNamesOfFilesArePartsAndAReadmeIsNone) {
  write("ptb.test.txt", "e");
  write("ptb.train.txt", "t");
  write("ptb.valid.txt", "v");
  write("README", "about");
  write("MANIFEST", "3 files");
  const auto source = open_text(folder());
  ASSERT_EQ(source->facts().parts.size(), 3U);
  EXPECT_EQ(documents_of(*source, "train"), std::vector<std::string>{"t"});
  EXPECT_EQ(documents_of(*source, "valid"), std::vector<std::string>{"v"});
  EXPECT_EQ(documents_of(*source, "test"), std::vector<std::string>{"e"});
  EXPECT_EQ(source->facts().note, "2 files are about the data and left out");
}

TEST_F(TextFilesTest, FoldersNamedAfterPartsAreParts) {
  for (const char* part : {"train", "dev", "test"}) std::filesystem::create_directories(folder() / part / "deep");
  write("train/1.c", "t1");
  write("train/deep/2.c", "t2");
  write("dev/1.c", "v");
  write("test/1.c", "e");
  const auto source = open_text(folder());
  EXPECT_EQ(documents_of(*source, "train"), (std::vector<std::string>{"t1", "t2"}));
  EXPECT_EQ(documents_of(*source, "valid"), std::vector<std::string>{"v"});
  EXPECT_EQ(documents_of(*source, "test"), std::vector<std::string>{"e"});
}

TEST_F(TextFilesTest, SourcesWithTestsAndNoTrainAreOneTextAndSaySo) {
  std::filesystem::create_directories(folder() / "test");
  write("main.c", "m");
  write("test/main.c", "n");
  const auto source = open_text(folder());
  EXPECT_EQ(documents_of(*source, "train"), (std::vector<std::string>{"m", "n"}));
  EXPECT_EQ(source->facts().note, "1 file is in a folder called valid or test and read with the rest");
}

TEST_F(TextFilesTest, PartsBesideOtherTextsAreRefused) {
  write("train.txt", "t");
  write("letters.txt", "l");
  EXPECT_EQ(message(), folder().string() +
                           ": has train.txt, which is a part, and letters.txt, which is not; 1 file is not named after "
                           "train, valid or test: move them away, or name the files that you mean with a pattern such "
                           "as '*.txt'");
}

// It would be learned from.
TEST_F(TextFilesTest, ATestAmongOtherTextsIsRefused) {
  write("book.txt", "b");
  write("test.txt", "e");
  EXPECT_NE(message().find("has test.txt, which is a part, and book.txt, which is not"), std::string::npos);
}

TEST_F(TextFilesTest, NothingToReadIsRefused) {
  EXPECT_EQ(message(), folder().string() + ": has no text in it or below, no files at all; name a folder with texts");
  write("a.txt", "");
  write("b.txt", "");
  EXPECT_EQ(message(), folder().string() + ": has 0 bytes; name a text with something in it");
  EXPECT_EQ(message_of<FileError>([&] { open_text(folder() / "a.txt"); }),
            (folder() / "a.txt").string() + ": has 0 bytes; name a text with something in it");
  EXPECT_EQ(message_of<FileError>([&] { open_text(folder() / "gone"); }),
            (folder() / "gone").string() +
                ": there is nothing; name a text file, a folder of texts or a pattern such as 'src/**/*.c'");
  ASSERT_EQ(::mkfifo((folder() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(message_of<FileError>([&] { open_text(folder() / "pipe"); }),
            (folder() / "pipe").string() + ": is neither a file nor a folder; name a text file or a folder of texts");
}

TEST_F(TextFilesTest, EmptyPartIsRefusedByTheNameOfItsFile) {
  write("train.txt", "t");
  write("valid.txt", "");
  EXPECT_EQ(message(), (folder() / "valid.txt").string() + ": has 0 bytes; name a text with something in it");
}

TEST_F(TextFilesTest, WhatIsNotUtf8IsRefusedWhenItIsRead) {
  const auto path = write("latin1.txt", "caf\xe9");
  const auto source = open_text(path);
  EXPECT_EQ(message_of<FileError>([&] { documents_of(*source, "train"); }),
            path.string() + ": byte 3 is not UTF-8; convert the file, or read it as bytes with data.tokens=bytes");
  EXPECT_EQ(documents_of(*open_text(path, TextCheck::none), "train"), std::vector<std::string>{"caf\xe9"});
}

class SeveralTexts : public TextFilesTest {
 protected:
  std::filesystem::path text(const std::string& name, const std::string& contents) const {
    std::filesystem::create_directories((folder() / name).parent_path());
    return write(name, contents);
  }
};

TEST_F(SeveralTexts, AreReadInTheOrderGivenAndSayWhatIsLeftOut) {
  text("z.txt", "z");
  text("b/2.txt", "2");
  text("b/1.txt", "1");
  text("b/x.bin", std::string("x\0", 2));
  text("c/y.bin", std::string("y\0", 2));
  text("c/3.md", "3");
  const auto source = open_texts({folder() / "z.txt", folder() / "b/", folder() / "c/*"});
  ASSERT_EQ(source->facts().parts.size(), 1U);
  EXPECT_EQ(documents_of(*source, "train"), (std::vector<std::string>{"z", "1", "2", "3"}));
  EXPECT_EQ(source->facts().note, "2 binary files are left out");
  EXPECT_EQ(documents_of(*open_texts({folder() / "b", folder() / "z.txt"}), "train"),
            (std::vector<std::string>{"1", "2", "z"}));
}

TEST_F(SeveralTexts, PartsAreThoseOfAllNamesTogether) {
  const auto train = text("ptb.train.txt", "t");
  const auto test = text("held/ptb.test.txt", "e");
  const auto files = open_texts({test, train});
  ASSERT_EQ(files->facts().parts.size(), 2U);
  EXPECT_EQ(documents_of(*files, "train"), std::vector<std::string>{"t"});
  EXPECT_EQ(documents_of(*files, "test"), std::vector<std::string>{"e"});
  text("train/1.txt", "1");
  text("test/1.txt", "2");
  // Folders that are given, patterns below them, and files inside them.
  const std::vector<std::vector<std::string>> ways{
      {"train", "test"}, {"train/*.txt", "test/*.txt"}, {"train/1.txt", "test/1.txt"}};
  for (const std::vector<std::string>& names : ways) {
    const auto source = open_texts({folder() / names[0], folder() / names[1]});
    ASSERT_EQ(source->facts().parts.size(), 2U) << names[0];
    EXPECT_EQ(documents_of(*source, "test"), std::vector<std::string>{"2"}) << names[0];
  }
}

TEST_F(SeveralTexts, APartBesideATextThatIsNoneIsRefused) {
  const auto train = text("ptb.train.txt", "t");
  const auto other = text("other.txt", "o");
  const std::string message = message_of<FileError>([&] { open_texts({train, other}); });
  EXPECT_EQ(message.find(train.string() + ", " + other.string() + ": has " + train.string() +
                         ", which is a part, and " + other.string() + ", which is not"),
            0U)
      << message;
}

// Its second copy could be what is held out.
TEST_F(SeveralTexts, ATextThatIsNamedTwiceIsRefused) {
  const auto one = text("b/1.txt", "1");
  text("b/2.txt", "2");
  EXPECT_EQ(message_of<FileError>([&] {
              open_texts({folder() / "b", one});
            }),
            one.string() + ": is named twice, so that it could be learned from and held out; leave one of them out");
  EXPECT_NE(message_of<FileError>([&] { open_texts({}); }).find("no text is named"), std::string::npos);
}

}  // namespace
}  // namespace routing::text_files_test
