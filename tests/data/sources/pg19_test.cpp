#include "routing/data/sources/pg19.h"

#include "data/source_support.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <string>
#include <vector>

namespace routing::pg19_test {
namespace {

class Pg19Test : public TemporaryFolderTest {
 protected:
  void make_folders() const {
    for (const char* name : {"train", "validation", "test"}) std::filesystem::create_directory(folder() / name);
  }
  void fill() const {
    make_folders();
    write("train/20.txt", "second\n");
    write("train/100.txt", "first\n");
    write("train/metadata.csv", "no book");
    write("validation/3.txt", "third");
    write("test/4.txt", "fourth");
  }
};

TEST_F(Pg19Test, BooksAreDocumentsInTheOrderOfTheirNames) {
  fill();
  const auto source = open_pg19(folder());
  EXPECT_EQ(source->facts().format, "pg19");
  ASSERT_EQ(source->facts().parts.size(), 3U);
  EXPECT_EQ(source->facts().parts[0].name, "train");
  EXPECT_EQ(source->facts().parts[1].name, "valid");
  EXPECT_EQ(source->facts().parts[2].name, "test");
  EXPECT_EQ(documents_of(*source, "train"), (std::vector<std::string>{"first\n", "second\n"}));
  EXPECT_EQ(documents_of(*source, "valid"), std::vector<std::string>{"third"});
  EXPECT_EQ(documents_of(*source, "test"), std::vector<std::string>{"fourth"});
}

TEST_F(Pg19Test, BooksThatAreNotThereAreCountedPartByPart) {
  fill();
  EXPECT_EQ(open_pg19(folder())->facts().missing,
            "2 of 28602 train books, 1 of 50 validation books, 1 of 100 test books");
  for (int book = 5; book < 54; ++book) write("validation/" + std::to_string(book) + ".txt", "x");
  EXPECT_EQ(open_pg19(folder())->facts().missing, "2 of 28602 train books, 1 of 100 test books");
  write("validation/one_more.txt", "x");
  EXPECT_EQ(open_pg19(folder())->facts().missing,
            "2 of 28602 train books, 51 of 50 validation books, 1 of 100 test books");
}

TEST_F(Pg19Test, MissingOrEmptyFoldersAreRefusedByName) {
  fill();
  std::filesystem::remove(folder() / "validation/3.txt");
  EXPECT_EQ(message_of<FileError>([&] { open_pg19(folder()); }),
            (folder() / "validation").string() +
                ": has no .txt file; PG-19 has train/, validation/ and test/ with one "
                "ID.txt per book; put at least one book into it");
  std::filesystem::remove(folder() / "validation");
  EXPECT_EQ(
      message_of<FileError>([&] { open_pg19(folder()); }),
      (folder() / "validation").string() +
          ": there is no such folder; PG-19 has train/, validation/ and test/ with one ID.txt per book; add it, or "
          "read any other text with data.format=text");
  EXPECT_EQ(message_of<FileError>([&] { open_pg19(folder() / "gone"); }),
            (folder() / "gone").string() +
                ": there is no such folder; name the one with train/, validation/ and test/ with one ID.txt per book");
}

TEST_F(Pg19Test, PartWithoutAnyTextIsRefused) {
  fill();
  write("test/4.txt", "");
  EXPECT_EQ(message_of<FileError>([&] { open_pg19(folder()); }),
            (folder() / "test").string() + ": its books have 0 bytes together; fetch them again");
}

TEST(Pg19, OfficialWordsAreThoseOfTheAuthors) {
  EXPECT_EQ(official_pg19_words("train"), 1973136207);
  EXPECT_EQ(official_pg19_words("valid"), 3007061);
  EXPECT_EQ(official_pg19_words("test"), 6966499);
  EXPECT_EQ(official_pg19_words("validation"), std::nullopt);
}

TEST(Pg19, RealBooksAreReadByteForByteAndCounted) {
  if (!real_data("")) GTEST_SKIP() << "ROUTING_TEST_DATA is not set";
  const auto source = open_pg19(*real_data("pg19"));
  EXPECT_EQ(source->facts().missing, "34 of 28602 train books, 4 of 50 validation books, 2 of 100 test books");
  for (const SourcePart& part : source->facts().parts) {
    const std::vector<std::string> books = documents_of(*source, part.name);
    ASSERT_EQ(books.size(), part.files.size());
    for (std::size_t book = 0; book < books.size(); ++book) {
      EXPECT_TRUE(books[book] == contents_of(part.files[book])) << part.files[book];
    }
  }
}

}  // namespace
}  // namespace routing::pg19_test
