// From files as users have them to ids and back.
#include "routing/data/dataset.h"

#include "routing/core/error.h"
#include "routing/data/formats.h"
#include "routing/data/images/image.h"
#include "routing/data/images/png_image.h"
#include "routing/data/sources/split.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace routing::dataset_test {
namespace {

namespace fs = std::filesystem;

class Datasets : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  DataConfig config(const fs::path& path) const {
    DataConfig data;
    data.path = path.string();
    data.cache = (folder_ / "cache").string();
    return data;
  }
  fs::path wikitext() const {
    write("wiki/wiki.train.tokens", " \n = A = \n \n the cat saw the dog \n");
    write("wiki/wiki.valid.tokens", " the dog \n");
    write("wiki/wiki.test.tokens", " the cow saw \n");
    return folder_ / "wiki";
  }
  // The bytes of red, green and blue planes are record, record + 1, record + 2.
  static std::string cifar(int records) {
    std::string file;
    for (int record = 0; record < records; ++record) {
      file += '\0';
      for (int plane = 0; plane < 3; ++plane) file += std::string(1024, static_cast<char>(record + plane));
    }
    return file;
  }

  TemporaryFolder folder_;
};

std::vector<std::int32_t> ids_of(const DatasetPart& part) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(part.tokens.size()));
  part.tokens.copy(0, std::span(ids));
  return ids;
}

std::string text_of(const Dataset& data, const std::string& part) {
  return data.tokenizer()->decode(ids_of(data.part(part)));
}

TEST_F(Datasets, AnyFileIsBytesThatAreNotCopied) {
  const Dataset data(config(write("notes", "0123456789")));
  EXPECT_EQ(data.facts().format, "bytes");
  EXPECT_EQ(data.facts().label(), "");
  EXPECT_EQ(data.part("train").tokens.size(), 9);
  EXPECT_EQ(data.part("test").tokens[0], '9');
  EXPECT_EQ(text_of(data, "train"), "012345678");
  EXPECT_FALSE(data.has("valid"));
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
  EXPECT_EQ(
      message_of<ConfigError>([&] { data.part("valid"); }),
      (folder_ / "notes").string() + ": its part valid is empty; choose another part, or give it some in data.split");
}

TEST_F(Datasets, AShortEnwik8IsPartialAndRefusedWhereAWholeOneIsRequired) {
  DataConfig short_file = config(write("dump", "<mediawiki xmlns=…> and so on"));
  EXPECT_EQ(Dataset(short_file).facts().format, "enwik8");
  EXPECT_EQ(Dataset(short_file).facts().label(), "partial data");
  short_file.require_whole = true;
  EXPECT_EQ(message_of<ConfigError>([&] { Dataset{short_file}; }),
            short_file.path +
                ": is not whole: 31 of 100000000 bytes; fetch the rest, or leave out `data.require_whole` to "
                "have figures labelled");
}

TEST_F(Datasets, WordsAreThoseOfTrainAndTextsComeBackByteForByte) {
  const Dataset data(config(wikitext()));
  EXPECT_EQ(data.facts().tokens, TokenKind::words);
  EXPECT_EQ(data.facts().vocabulary_size, 8) << "<eos> = A the cat saw dog <unk>";
  EXPECT_EQ(text_of(data, "train"), " \n = A = \n \n the cat saw the dog \n");
  EXPECT_EQ(text_of(data, "valid"), " the dog \n");
  EXPECT_EQ(text_of(data, "test"), " the <unk> saw \n");
  EXPECT_EQ(data.part("train").tokens.size(), 12);
  EXPECT_EQ(data.part("train").words, 8);
  EXPECT_EQ(data.part("train").bytes, 34);
  EXPECT_EQ(data.facts().label(), "");
}

TEST_F(Datasets, AreTokenisedOnceAndAgainWhenTheSourceChanges) {
  const fs::path wiki = wikitext();
  std::vector<std::string> notes;
  const PrepareOptions options{.notes = [&](const std::string& line) { notes.push_back(line); }};
  const std::string before = Dataset(config(wiki), options).checksum("train");
  EXPECT_FALSE(notes.empty());
  notes.clear();
  EXPECT_EQ(Dataset(config(wiki), options).checksum("train"), before);
  EXPECT_TRUE(notes.empty()) << notes.front();
  write("wiki/wiki.train.tokens", " another \n");
  EXPECT_NE(Dataset(config(wiki), options).checksum("train"), before);
  EXPECT_FALSE(notes.empty());
}

TEST_F(Datasets, AVocabularyThatIsGivenIsUsed) {
  const Dataset trained(config(wikitext()));
  DataConfig other = config(write("mine.txt", " a dog saw A \n"));
  other.tokens = TokenKind::words;
  other.split = "100%/0%/0%";
  other.vocabulary = trained.tokenizer_path().string();
  const Dataset data(other);
  EXPECT_EQ(data.facts().tokenizer_hash, trained.facts().tokenizer_hash);
  EXPECT_EQ(text_of(data, "train"), " <unk> dog saw A \n");
}

TEST_F(Datasets, WithoutATrainFileValidGivesOneUnlessItIsOnlyEvaluated) {
  const fs::path wiki = wikitext();
  fs::remove(wiki / "wiki.train.tokens");
  write("wiki/wiki.valid.tokens", " a \n b \n c \n d \n e \n f \n g \n h \n i \n j \n");
  const Dataset data(config(wiki));
  EXPECT_EQ(data.facts().missing, "no wiki.train.tokens; train is the first 90 % of valid");
  EXPECT_EQ(text_of(data, "train"), " a \n b \n c \n d \n e \n f \n g \n h \n i \n");
  EXPECT_EQ(text_of(data, "valid"), " <unk> \n");
  DataConfig evaluated = config(wiki);
  EXPECT_NE(message_of<ConfigError>([&] {
              Dataset(evaluated, {.train_needed = false});
            }).find("has no train part to make a vocabulary from; name one with data.vocabulary"),
            std::string::npos);
  evaluated.vocabulary = data.tokenizer_path().string();
  const Dataset whole_valid(evaluated, {.train_needed = false});
  EXPECT_EQ(whole_valid.part("valid").tokens.size(), 20);
  EXPECT_FALSE(whole_valid.has("train"));
}

TEST_F(Datasets, SubwordsKeepLinesAndEndEveryDocument) {
  write("books/train/1.txt", "It was.\n\n  Indented\tline\n");
  write("books/train/2.txt", "no line end");
  write("books/validation/3.txt", "x\n");
  write("books/test/4.txt", "Été ▁ 中\r\n");
  DataConfig books = config(folder_ / "books");
  books.vocabulary_size = 300;
  const Dataset data(books);
  EXPECT_EQ(data.facts().format, "pg19");
  EXPECT_EQ(data.facts().tokens, TokenKind::subwords);
  EXPECT_EQ(text_of(data, "train"), "It was.\n\n  Indented\tline\nno line end");
  EXPECT_EQ(text_of(data, "test"), "Été ▁ 中\r\n");
  const std::vector<std::int32_t> ids = ids_of(data.part("train"));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 2) << "one end per book";
  EXPECT_EQ(ids.back(), 0);
  EXPECT_EQ(data.part("train").documents, 2);
  EXPECT_EQ(data.part("train").words, 7);
  EXPECT_EQ(data.facts().label(), "partial data");
}

TEST_F(Datasets, ImagesAreRecordsInRasterOrder) {
  write("cifar/data_batch_1.bin", cifar(100));
  write("cifar/test_batch.bin", cifar(1));
  const Dataset data(config(folder_ / "cifar"));
  EXPECT_EQ(data.facts().image, (ImageShape{32, 32}));
  EXPECT_EQ(data.facts().record_length(), 3072);
  EXPECT_EQ(data.part("train").documents, 98);
  EXPECT_EQ(data.part("valid").documents, 2);
  EXPECT_EQ(data.part("valid").tokens[0], 98);
  EXPECT_EQ(data.part("valid").tokens[1], 99) << "green follows red";
  EXPECT_EQ(data.part("valid").tokens[5], 100);
  EXPECT_EQ(data.tokenizer(), nullptr);
  EXPECT_EQ(data.facts().missing,
            "1 of 5 train batches, 100 of 10000 records in data_batch_1.bin, 1 of 10000 records in test_batch.bin; "
            "valid is the last 2 % of train");
}

TEST_F(Datasets, ImagesShrinkWhenAsked) {
  write("cifar/data_batch_1.bin", cifar(50));
  DataConfig small = config(folder_ / "cifar");
  small.image_size = 16;
  EXPECT_EQ(Dataset(small).facts().image, (ImageShape{16, 16}));
  small.image_size = 15;
  EXPECT_THROW(Dataset{small}, ConfigError);
}

TEST_F(Datasets, PreparedFoldersAreOpenedAsTheyAre) {
  DataConfig wiki = config(wikitext());
  prepare_data(wiki, folder_ / "prepared");
  EXPECT_TRUE(is_prepared(folder_ / "prepared"));
  const Dataset data(config(folder_ / "prepared"));
  EXPECT_EQ(data.facts(), read_data_facts(folder_ / "prepared"));
  EXPECT_EQ(text_of(data, "valid"), " the dog \n");
  EXPECT_EQ(message_of<FileError>([&] { prepare_data(wiki, folder_ / "prepared"); }),
            (folder_ / "prepared").string() + ": is there already and not empty; choose another folder or remove it");
}

TEST_F(Datasets, AFailedPreparationLeavesNothingBehind) {
  write("wiki/wiki.train.tokens", "not UTF-8 \xFF\n");
  EXPECT_THROW(prepare_data(config(folder_ / "wiki"), folder_ / "out"), FileError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "the source alone";
}

TEST_F(Datasets, WhatAKilledPreparationLeftIsRemovedByTheNext) {
  // The largest number a process can have is far below this one; process 1 is always there.
  fs::create_directories(folder_ / "p.part-2147483647");
  fs::create_directories(folder_ / "p.part-1");
  fs::create_directories(folder_ / "p.part-mine");
  prepare_data(config(wikitext()), folder_ / "p");
  EXPECT_FALSE(fs::exists(folder_ / "p.part-2147483647"));
  EXPECT_TRUE(fs::exists(folder_ / "p.part-1"));
  EXPECT_TRUE(fs::exists(folder_ / "p.part-mine")) << "no process of ours";
}

TEST_F(Datasets, DamagedPreparedDataAreRefused) {
  prepare_data(config(wikitext()), folder_ / "p");
  const auto refusal = [&] { return message_of<FileError>([&] { Dataset{config(folder_ / "p")}; }); };
  std::fstream((folder_ / "p" / "test.shard"), std::ios::in | std::ios::out | std::ios::binary).seekp(130).put('\7');
  EXPECT_NE(refusal().find("test.shard: the ids have checksum"), std::string::npos) << refusal();
  write("p/data.json", R"({"routing_data": 2})");
  EXPECT_NE(refusal().find("data.json: is of version 2, but this program reads 1"), std::string::npos) << refusal();
  write("p/data.json", "{}");
  EXPECT_NE(refusal().find("does not describe prepared data"), std::string::npos) << refusal();
}

TEST_F(Datasets, AVocabularyOfOtherDataIsRefused) {
  prepare_data(config(wikitext()), folder_ / "p");
  write("p/vocabulary.txt", "<eos>\n<unk>\nother\n");
  const Dataset data(config(folder_ / "p"));
  EXPECT_NE(message_of<FileError>([&] { data.tokenizer(); }).find("vocabulary.txt: has hash "), std::string::npos);
}

TEST_F(Datasets, SettingsThatPreparedDataDoNotHaveAreRefused) {
  prepare_data(config(wikitext()), folder_ / "p");
  const auto refusal = [&](const auto& change) {
    DataConfig asked = config(folder_ / "p");
    change(asked);
    return message_of<ConfigError>([&] { Dataset{asked}; });
  };
  const std::string prepared = (folder_ / "p").string() + ": was prepared with ";
  const std::string remedy = " is asked for; leave out the setting, or prepare the data anew";
  EXPECT_EQ(refusal([](DataConfig& c) { c.format = DataFormat::pg19; }),
            prepared + "data.format wikitext, but pg19" + remedy);
  EXPECT_EQ(refusal([](DataConfig& c) { c.tokens = TokenKind::bytes; }),
            prepared + "data.tokens words, but bytes" + remedy);
  EXPECT_EQ(refusal([](DataConfig& c) { c.image_size = 16; }), prepared + "data.image_size 0, but 16" + remedy);
  write("other.txt", "<eos>\n<unk>\nother\n");
  EXPECT_NE(refusal([&](DataConfig& c) { c.vocabulary = (folder_ / "other.txt").string(); }), "");
}

TEST_F(Datasets, BytesAreTheSameFromAFileAndFromAShard) {
  DataConfig text = config(write("t.txt", "some bytes \xFF\n"));
  text.format = DataFormat::text;
  text.tokens = TokenKind::bytes;
  text.split = "100%/0%/0%";
  const Dataset shard(text);
  const Dataset file(config(folder_ / "t.txt"));
  EXPECT_EQ(shard.facts().tokenizer_hash, file.facts().tokenizer_hash);
  EXPECT_EQ(text_of(shard, "train"), "some bytes \xFF\n");
  EXPECT_NE(message_of<ConfigError>([&] {
              prepare_data(config(folder_ / "t.txt"), folder_ / "p");
            }).find("is a file of bytes, which needs no preparation"),
            std::string::npos);
}

TEST_F(Datasets, ASlashAtTheEndIsTheSamePlace) {
  EXPECT_EQ(tidy_path("/a/b/../c/"), fs::path("/a/c"));
  fs::create_directories(folder_ / "p");
  prepare_data(config(wikitext()), fs::path((folder_ / "p").string() + "/"));
  EXPECT_TRUE(is_prepared(folder_ / "p"));
}

TEST_F(Datasets, AWholeSetIsRequiredBeforeAnyWork) {
  wikitext();
  fs::remove(folder_ / "wiki/wiki.train.tokens");
  DataConfig whole = config(folder_ / "wiki");
  whole.require_whole = true;
  EXPECT_THROW(prepare_data(whole, folder_ / "p"), ConfigError);
  EXPECT_FALSE(fs::exists(folder_ / "p"));
}

TEST_F(Datasets, AFolderWithItsOwnDataFileIsNotTakenForPrepared) {
  write("notes/data.json", "{}");
  write("notes/a.txt", "text\n");
  EXPECT_FALSE(is_prepared(folder_ / "notes"));
}

TEST_F(Datasets, PicturesThatChangeInPlaceAreReadAgain) {
  const auto picture = [&](std::uint8_t value) {
    fs::create_directories(folder_ / "png");
    write_png(folder_ / "png" / "a.png", {.shape = {2, 2}, .values = std::vector<std::uint8_t>(12, value)});
  };
  picture(1);
  DataConfig images = config(folder_ / "png");
  images.split = "100%/0%/0%";
  EXPECT_EQ(Dataset(images).part("train").tokens[0], 1);
  // In place, so that the folder itself does not change.
  write_png(folder_ / "b.png", {.shape = {2, 2}, .values = std::vector<std::uint8_t>(12, 200)});
  std::ofstream(folder_ / "png" / "a.png", std::ios::binary) << read_file(folder_ / "b.png");
  fs::last_write_time(folder_ / "png" / "a.png", fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(Dataset(images).part("train").tokens[0], 200);
}

TEST_F(Datasets, NothingAtThePathIsSaid) {
  EXPECT_EQ(message_of<FileError>([&] { Dataset{config(folder_ / "nowhere")}; }),
            (folder_ / "nowhere").string() + ": is not there; check the name");
  EXPECT_THROW(Dataset{DataConfig{}}, ConfigError);
}

TEST_F(Datasets, FormatsAreTold) {
  const auto format_at = [&](const std::string& file) {
    const fs::path place = write(file, "x");
    return std::string(to_string(detect_format(place.parent_path())));
  };
  EXPECT_EQ(format_at("a/wiki.valid.tokens"), "wikitext");
  EXPECT_EQ(format_at("b/test_batch.bin"), "cifar10");
  EXPECT_EQ(format_at("c/val_data.npz"), "imagenet64");
  EXPECT_EQ(format_at("d/one.png"), "images");
  EXPECT_EQ(format_at("e/one.txt"), "text");
  write("f/train/1.txt", "x");
  EXPECT_EQ(to_string(detect_format(folder_ / "f")), "text");
  write("f/validation/1.txt", "x");
  write("f/test/1.txt", "x");
  EXPECT_EQ(to_string(detect_format(folder_ / "f")), "pg19");
  EXPECT_EQ(format_at("i/deep/one.c"), "text");
  EXPECT_EQ(to_string(detect_format(folder_ / "i")), "text");
  EXPECT_EQ(to_string(detect_format(folder_ / "i/**/*.c")), "text");
  write("g/valid/1.png", "x");
  EXPECT_EQ(to_string(detect_format(folder_ / "g")), "images");
  fs::create_directories(folder_ / "h" / "valid_64x64");
  EXPECT_EQ(to_string(detect_format(folder_ / "h")), "imagenet64");
  EXPECT_EQ(to_string(detect_format(write("x.npz", ""))), "imagenet64");
  EXPECT_EQ(to_string(detect_format(write("data_batch_3.bin", ""))), "cifar10");
  fs::create_directories(folder_ / "empty");
  EXPECT_NE(message_of<FileError>([&] { detect_format(folder_ / "empty"); }).find("holds no known data set"),
            std::string::npos);
}

TEST(Formats, OnlyThreeAreMadeUp) {
  for (const DataFormat format : kEvery<DataFormat>) {
    const bool expected = format == DataFormat::copy || format == DataFormat::reverse || format == DataFormat::recall;
    EXPECT_EQ(is_made_up(format), expected) << to_string(format);
  }
}

TEST(TokenKinds, FollowTheFormatUnlessAskedFor) {
  EXPECT_EQ(token_kind(DataFormat::enwik8, TokenKind::automatic), TokenKind::bytes);
  EXPECT_EQ(token_kind(DataFormat::wikitext, TokenKind::automatic), TokenKind::words);
  EXPECT_EQ(token_kind(DataFormat::pg19, TokenKind::automatic), TokenKind::subwords);
  EXPECT_EQ(token_kind(DataFormat::pg19, TokenKind::bytes), TokenKind::bytes);
  EXPECT_EQ(token_kind(DataFormat::images, TokenKind::automatic), TokenKind::subpixels);
  EXPECT_EQ(message_of<ConfigError>([] { token_kind(DataFormat::cifar10, TokenKind::words); }),
            "data.tokens is words, but the data are cifar10, which has subpixels; set data.tokens=subpixels");
  EXPECT_THROW(token_kind(DataFormat::text, TokenKind::subpixels), ConfigError);
  EXPECT_THROW(token_kind(DataFormat::enwik8, TokenKind::words), ConfigError);
}

TEST(FittedTo, FillsInTheVocabularyAndRefusesWhatDoesNotFit) {
  const auto types = [](std::int64_t size) {
    DataFacts facts;
    facts.vocabulary_size = size;
    return facts;
  };
  DataFacts images;
  images.image = {32, 32};
  ExperimentConfig config;
  config.model.vocab_size = 0;
  EXPECT_EQ(fitted_to(config, types(300)).model.vocab_size, 300);
  config.model.vocab_size = 258;
  EXPECT_EQ(fitted_to(config, types(256)).model.vocab_size, 258) << "more is fine";
  EXPECT_EQ(message_of<ConfigError>([&] { fitted_to(config, types(300)); }),
            "model.vocab_size is 258, but the data have 300 different tokens; set model.vocab_size=300, or 0 for that "
            "of the data");
  config.model.vocab_size = 256;
  EXPECT_EQ(message_of<ConfigError>([&] { fitted_to(config, images); }),
            "the model is for text, but the data are images of 32 x 32; set model.image_height=32 and "
            "model.image_width=32, or choose other data");
  config.model.image_height = config.model.image_width = 32;
  EXPECT_NO_THROW(fitted_to(config, images));
  EXPECT_THROW(fitted_to(config, {}), ConfigError);
}

TEST(CountWords, CountsRunsBetweenWhiteSpace) {
  EXPECT_EQ(count_words(""), 0);
  EXPECT_EQ(count_words(" \n\t"), 0);
  EXPECT_EQ(count_words("one"), 1);
  EXPECT_EQ(count_words(" one two\nthree\v4 "), 4);
}

// The real sets, where they are: what comes out of the shards is what the files hold.
class RealData : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const place = std::getenv("ROUTING_TEST_DATA");
    if (place == nullptr) GTEST_SKIP() << "ROUTING_TEST_DATA is not set";
    root_ = place;
  }
  Dataset open(const std::string& name) const {
    DataConfig data;
    data.path = (root_ / name).string();
    data.vocabulary_size = 2000;
    data.cache = (folder_ / "cache").string();
    return Dataset(data);
  }
  std::string file(const std::string& name) const { return read_file(root_ / name); }

  fs::path root_;
  TemporaryFolder folder_;
};

TEST_F(RealData, Enwik8ComesBack) {
  const Dataset data = open("enwik8/enwik8");
  EXPECT_EQ(data.facts().missing, "4154399 of 100000000 bytes");
  EXPECT_EQ(text_of(data, "train") + text_of(data, "valid") + text_of(data, "test"), file("enwik8/enwik8"));
}

TEST_F(RealData, WikiText2ComesBackWithTheKnownCounts) {
  const Dataset data = open("wikitext-2");
  EXPECT_EQ(data.facts().vocabulary_size, 33278);
  EXPECT_EQ(data.part("train").tokens.size(), 2088628);
  EXPECT_EQ(data.part("valid").tokens.size(), 217646);
  EXPECT_EQ(data.part("test").tokens.size(), 245569);
  for (const std::string part : {"train", "valid", "test"}) {
    EXPECT_EQ(text_of(data, part), file("wikitext-2/wiki." + part + ".tokens")) << part;
  }
}

TEST_F(RealData, WikiText103HasItsTestTokensAlsoWithoutATrainFile) {
  const Dataset data = open("wikitext-103");
  EXPECT_EQ(data.part("test").tokens.size(), 245569);
  EXPECT_EQ(data.part("train").tokens.size() + data.part("valid").tokens.size(), 217646);
  EXPECT_EQ(data.facts().label(), "partial data");
}

TEST_F(RealData, Cifar10RecordsComeBack) {
  const Dataset data = open("cifar10");
  const std::string batch = file("cifar10/test_batch.bin");
  ASSERT_EQ(data.part("test").documents, 10000);
  EXPECT_EQ(data.part("train").documents + data.part("valid").documents, 10000);
  std::vector<std::uint8_t> raster(3072);
  std::vector<std::uint8_t> planar(3072);
  for (std::int64_t record = 0; record < 10000; record += 97) {
    data.part("test").tokens.copy(record * 3072, std::span(raster));
    planar_from_raster(raster, planar);
    const auto* const expected = batch.data() + record * 3073 + 1;
    EXPECT_TRUE(std::equal(planar.begin(), planar.end(), reinterpret_cast<const std::uint8_t*>(expected))) << record;
  }
}

TEST_F(RealData, ImageNet64PicturesComeBack) {
  const Dataset data = open("imagenet64");
  EXPECT_EQ(data.part("train").documents + data.part("valid").documents + data.part("test").documents, 600);
  const Image first = read_png(root_ / "imagenet64/valid_64x64/00001.png");
  std::vector<std::uint8_t> values(12288);
  data.part("train").tokens.copy(0, std::span(values));
  EXPECT_EQ(values, first.values);
  const Image last = read_png(root_ / "imagenet64/valid_64x64/00600.png");
  data.part("test").tokens.copy(29 * 12288, std::span(values));
  EXPECT_EQ(values, last.values);
}

TEST_F(RealData, BooksOfPg19ComeBack) {
  const Dataset data = open("pg19");
  std::vector<fs::path> books;
  for (const auto& entry : fs::directory_iterator(root_ / "pg19/test")) books.push_back(entry.path());
  std::sort(books.begin(), books.end());
  std::string expected;
  for (const fs::path& book : books) expected += read_file(book);
  EXPECT_EQ(text_of(data, "test"), expected);
  EXPECT_EQ(data.part("train").documents, 34);
  EXPECT_EQ(data.part("valid").documents, 4);
  EXPECT_EQ(data.part("test").documents, 2);
}

}  // namespace
}  // namespace routing::dataset_test
