// Several paths as one set of data.
#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "routing/data/dataset.h"
#include "routing/data/formats.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>

namespace routing::several_data_test {
namespace {

namespace fs = std::filesystem;

class SeveralData : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  DataConfig config(const std::vector<fs::path>& paths) const {
    DataConfig data;
    std::vector<std::string> texts;
    for (const fs::path& path : paths) texts.push_back(path.string());
    data.path = path_list(texts);
    data.cache = (folder_ / "cache").string();
    return data;
  }
  static std::string text_of(const Dataset& data, const std::string& part) {
    std::string text;
    const TokenView tokens = data.part(part).tokens;
    for (std::int64_t i = 0; i < tokens.size(); ++i) text += static_cast<char>(tokens[i]);
    return text;
  }

  TemporaryFolder folder_;
};

TEST_F(SeveralData, FilesAreReadAsBytesLikeOne) {
  const fs::path second = write("2.txt", "second\n");
  const fs::path first = write("1.txt", "first\n");
  DataConfig data = config({second, first});
  data.split = "100%/0%/0%";
  const Dataset both(data);
  EXPECT_EQ(both.facts().tokens, TokenKind::bytes);
  EXPECT_EQ(text_of(both, "train"), "second\nfirst\n");
  EXPECT_EQ(both.path().string(), second.string() + ", " + first.string());
  EXPECT_EQ(both.facts().cut, "train, valid and test are cut from one piece by 100%/0%/0%");
  EXPECT_EQ(text_of(Dataset(config({write("x.train.txt", "learn\n"), write("x.valid.txt", "look\n"),
                                    write("x.test.txt", "score\n")})),
                    "test"),
            "score\n");
}

TEST_F(SeveralData, WhatIsInSightIsSaidWithoutReading) {
  const fs::path file = write("1.txt", "first\n");
  const DataInSight one = look_at_data(config({file}));
  EXPECT_TRUE(one.is_own_shard);
  EXPECT_EQ(one.format, DataFormat::bytes);
  const DataInSight two = look_at_data(config({file, write("2.txt", "x")}));
  EXPECT_FALSE(two.is_own_shard);
  EXPECT_EQ(two.tokens, TokenKind::bytes);
  write("b/3.txt", "x");
  const DataInSight with_folder = look_at_data(config({file, folder_ / "b"}));
  EXPECT_EQ(with_folder.format, DataFormat::text);
  EXPECT_EQ(with_folder.tokens, TokenKind::subwords);
  DataConfig words = config({file, folder_ / "b/*.txt"});
  words.tokens = TokenKind::words;
  EXPECT_EQ(look_at_data(words).tokens, TokenKind::words);
  EXPECT_EQ(facts_of(open_source(look_at_data(words), 0)).parts.front().files.size(), 2U);
}

TEST_F(SeveralData, ADataSetAmongThemIsRefused) {
  const fs::path file = write("1.txt", "first\n");
  const auto refusal = [&](const fs::path& other) {
    return message_of<ConfigError>([&] { Dataset{config({file, other})}; });
  };
  EXPECT_EQ(refusal(write("enwik8", "<mediawiki xmlns")),
            (folder_ / "enwik8").string() +
                ": is enwik8, a data set of its own, and cannot be one of 2 paths; name it alone, or set "
                "data.format=text to read all of them as texts");
  write("png/a.png", "x");
  EXPECT_NE(refusal(folder_ / "png").find(": is images, a data set of its own"), std::string::npos);
  for (const char* part : {"train", "validation", "test"}) write("books/" + std::string(part) + "/1.txt", "x");
  EXPECT_NE(refusal(folder_ / "books").find(": is pg19, a data set of its own"), std::string::npos);
  DataConfig enwik8 = config({file, write("2.txt", "x")});
  enwik8.format = DataFormat::enwik8;
  EXPECT_EQ(message_of<ConfigError>([&] { Dataset{enwik8}; }),
            "data.format is enwik8, which is one data set, but 2 paths are named; name one, or set data.format=text to "
            "read all of them as texts");
  DataConfig prepared = config({folder_ / "b"});
  write("b/3.txt", "some text\n");
  prepared.tokens = TokenKind::words;
  prepare_data(prepared, folder_ / "p");
  EXPECT_NE(refusal(folder_ / "p").find("p: is prepared and cannot be one of 2 paths; name it alone"),
            std::string::npos);
}

TEST_F(SeveralData, APathThatIsNotThereIsSaidByItself) {
  EXPECT_EQ(message_of<FileError>([&] {
              Dataset{config({write("1.txt", "x"), folder_ / "gone"})};
            }),
            (folder_ / "gone").string() + ": is not there; check the name");
}

TEST_F(SeveralData, AllOfThemTellPreparedDataApart) {
  const fs::path a = write("a.txt", "a\n");
  const fs::path b = write("b.txt", "b\n");
  EXPECT_NE(cache_folder(config({a, b})), cache_folder(config({b, a})));
  EXPECT_EQ(tidy_paths("/x/../a\n-\n/b/"), "/a\n-\n/b");
}

TEST_F(SeveralData, APipeIsRefusedWhereDataAreReadMoreThanOnce) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(message_of<FileError>([&] { Dataset{config({folder_ / "pipe"})}; }),
            (folder_ / "pipe").string() +
                ": is a pipe, which can be read only once, and that is too little here; write it to a file and name "
                "that");
}

TEST_F(SeveralData, WhatIsRequiredIsRefusedAsADatasetWould) {
  const fs::path file = write("1.txt", "first\n");
  EXPECT_NO_THROW(require_data(config({file})));
  EXPECT_NO_THROW(require_data(config({file, write("2.txt", "x")})));
  EXPECT_FALSE(fs::exists(folder_ / "cache")) << "nothing is read";
  const auto same = [&](const DataConfig& data) {
    const std::string message = message_of<Error>([&] { require_data(data); });
    EXPECT_NE(message, "");
    EXPECT_EQ(message, message_of<Error>([&] { Dataset{data}; }));
  };
  same(config({folder_ / "gone"}));
  same(config({file, folder_ / "gone"}));
  same(config({}));
  fs::create_directories(folder_ / "empty");
  same(config({folder_ / "empty"}));
  write("wiki/wiki.test.tokens", " a \n");
  DataConfig whole = config({folder_ / "wiki"});
  whole.require_whole = true;
  same(whole);
}

}  // namespace
}  // namespace routing::several_data_test
