#include "routing/data/sources/wikitext.h"

#include "data/source_support.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <string>
#include <vector>

namespace routing::wikitext_test {
namespace {

class WikitextTest : public TemporaryFolderTest {};

TEST_F(WikitextTest, FolderWithThreeFilesIsWholeAndEveryFileIsADocument) {
  write("wiki.train.tokens", " \n = T = \n");
  write("wiki.valid.tokens", " v \n");
  write("wiki.test.tokens", " t \n");
  const auto source = open_wikitext(folder());
  EXPECT_EQ(source->facts().format, "wikitext");
  EXPECT_EQ(source->facts().missing, "");
  ASSERT_EQ(source->facts().parts.size(), 3U);
  EXPECT_EQ(source->facts().parts[0].name, "train");
  EXPECT_EQ(source->facts().parts[1].name, "valid");
  EXPECT_EQ(source->facts().parts[2].name, "test");
  EXPECT_EQ(source->facts().parts[1].files, std::vector{folder() / "wiki.valid.tokens"});
  EXPECT_EQ(documents_of(*source, "train"), std::vector<std::string>{" \n = T = \n"});
  EXPECT_EQ(documents_of(*source, "valid"), std::vector<std::string>{" v \n"});
  EXPECT_EQ(documents_of(*source, "test"), std::vector<std::string>{" t \n"});
}

TEST_F(WikitextTest, MissingFilesAreNamed) {
  write("wiki.valid.tokens", " v \n");
  EXPECT_EQ(open_wikitext(folder())->facts().missing, "no wiki.train.tokens, no wiki.test.tokens");
  write("wiki.test.tokens", " t \n");
  const auto source = open_wikitext(folder());
  EXPECT_EQ(source->facts().missing, "no wiki.train.tokens");
  EXPECT_EQ(source->facts().part("train"), nullptr);
  EXPECT_EQ(source->facts().parts.size(), 2U);
}

TEST_F(WikitextTest, FolderWithoutAnyOfThemIsRefused) {
  write("wiki.train.raw", "x");
  EXPECT_EQ(message_of<FileError>([&] { open_wikitext(folder()); }),
            folder().string() +
                ": has none of wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens; "
                "name the folder of WikiText-103 or WikiText-2 (word level, not raw)");
  EXPECT_EQ(message_of<FileError>([&] { open_wikitext(folder() / "gone"); }),
            (folder() / "gone").string() +
                ": there is no such folder; name the one with wiki.train.tokens, "
                "wiki.valid.tokens and wiki.test.tokens");
}

TEST_F(WikitextTest, EmptyFileIsRefused) {
  write("wiki.test.tokens", "");
  EXPECT_EQ(message_of<FileError>([&] { open_wikitext(folder()); }),
            (folder() / "wiki.test.tokens").string() + ": has 0 bytes; fetch it again");
}

TEST_F(WikitextTest, BytesThatAreNotUtf8AreRefusedUnlessAnyBytesMayBe) {
  write("wiki.test.tokens", " caf\xe9 \n");
  EXPECT_THROW(documents_of(*open_wikitext(folder()), "test"), FileError);
  EXPECT_EQ(documents_of(*open_wikitext(folder(), TextCheck::none), "test"), std::vector<std::string>{" caf\xe9 \n"});
}

TEST(Wikitext, RealSetsAreReadByteForByte) {
  if (!real_data("")) GTEST_SKIP() << "ROUTING_TEST_DATA is not set";
  EXPECT_EQ(open_wikitext(*real_data("wikitext-2"))->facts().missing, "");
  EXPECT_EQ(open_wikitext(*real_data("wikitext-103"))->facts().missing, "no wiki.train.tokens");
  for (const char* set : {"wikitext-2", "wikitext-103"}) {
    const auto source = open_wikitext(*real_data(set));
    for (const SourcePart& part : source->facts().parts) {
      const std::vector<std::string> documents = documents_of(*source, part.name);
      ASSERT_EQ(documents.size(), 1U);
      EXPECT_TRUE(documents[0] == contents_of(*real_data(set) / ("wiki." + part.name + ".tokens"))) << part.name;
    }
  }
}

}  // namespace
}  // namespace routing::wikitext_test
