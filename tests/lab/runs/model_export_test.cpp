#include "lab/runs/model_export.h"

#include "lab/runs/zip_folder.h"
#include "routing/config/toml.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/sha256.h"
#include "routing/data/tokenizers/tokenizers.h"
#include "routing/model/weights.h"
#include "support/message_of.h"
#include "support/small_experiment.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

namespace routing::model_export_test {
namespace {

namespace fs = std::filesystem;

class ModelExportTest : public testing::Test {
 protected:
  ModelExportTest() {
    config_.data.path = (folder_ / "text").string();
    config_.data.cache = (folder_ / "cache").string();
    save({.version = "1", .tokenizer_hash = std::string(16, '0')});
    write_file_at_once(folder_ / "metrics.jsonl", "{}\n");
    source_.metrics = folder_ / "metrics.jsonl";
  }
  void save(const ModelNotes& notes) {
    const auto model = make_model(config_, at::TensorOptions().dtype(at::kFloat));
    save_model(folder_ / "saved", *model, notes);
    source_.model = read_model_header(folder_ / "saved");
  }
  std::string refused(const ExportTarget& target) const {
    return message_of<ConfigError>([&] { export_model(source_, "card", target); });
  }

  TemporaryFolder folder_;
  ExperimentConfig config_ = small_experiment();
  ExportSource source_ = {};
};

TEST_F(ModelExportTest, HasTheTensorsOfTheModelChecksumsAndNoPath) {
  const auto out = folder_ / "out";
  const std::vector<ExportedFile> files = export_model(source_, "card", {.path = out});
  std::map<std::string, std::int64_t> sizes;
  for (const ExportedFile& file : files) sizes[file.name] = file.bytes;
  std::string sums = read_file(out / "SHA256SUMS");
  for (const auto& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename();
    const std::string text = read_file(entry.path());
    EXPECT_EQ(sizes.at(name), static_cast<std::int64_t>(text.size()));
    EXPECT_EQ(text.find(folder_.path().string()), std::string::npos) << name;
    if (name == "SHA256SUMS") continue;
    const std::string sum = sha256(std::as_bytes(std::span(text.data(), text.size())));
    EXPECT_NE(sums.find(sum + "  " + name + "\n"), std::string::npos) << name;
  }
  EXPECT_EQ(sizes.size(), 5U);
  EXPECT_EQ(read_file(out / "README.md"), "card");
  const auto before = named_tensors(*load_sequence_model(folder_ / "saved"));
  const auto after = named_tensors(*load_sequence_model(out / "model.safetensors"));
  for (const auto& [name, tensor] : before) EXPECT_TRUE(at::equal(tensor, after.at(name))) << name;
  EXPECT_EQ(load_model_config(out / "model.safetensors"), portable_config(source_));
  EXPECT_EQ(to_toml(portable_config(source_)), read_file(out / "config.toml"));
}

TEST_F(ModelExportTest, TheConfigurationKnowsItsTokensWithoutData) {
  EXPECT_EQ(exported_tokens(source_), TokenKind::bytes);
  ExperimentConfig expected = config_;
  expected.data.path.clear();
  expected.data.cache.clear();
  expected.data.tokens = TokenKind::bytes;
  EXPECT_EQ(portable_config(source_), expected);
  source_.tokenizer = folder_ / "vocabulary.txt";
  EXPECT_EQ(exported_tokens(source_), TokenKind::words);
  source_.tokenizer = folder_ / "subwords.model";
  EXPECT_EQ(exported_tokens(source_), TokenKind::subwords);
  source_.tokenizer.clear();
  config_.data.path.clear();
  save({.version = "1"});
  EXPECT_EQ(exported_tokens(source_), TokenKind::automatic) << "made up";
}

TEST_F(ModelExportTest, OnlyTheVocabularyThatWasLearnedIsPassedOn) {
  save({.version = "1", .tokenizer_hash = tokenizer_hash("words", "the\na\n")});
  EXPECT_NE(message_of<FileError>([&] { export_model(source_, "", {.path = folder_ / "out"}); }).find("is not kept"),
            std::string::npos);
  source_.tokenizer = folder_ / "vocabulary.txt";
  write_file_at_once(source_.tokenizer, "another\n");
  EXPECT_NE(message_of<FileError>([&] { export_model(source_, "", {.path = folder_ / "out"}); }).find("learned"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  write_file_at_once(source_.tokenizer, "the\na\n");
  export_model(source_, "", {.path = folder_ / "out"});
  EXPECT_EQ(read_file(folder_ / "out" / "vocabulary.txt"), "the\na\n");
}

TEST_F(ModelExportTest, WhatIsThereIsReplacedOnlyIfAskedAndOnlyIfItIsAnExport) {
  const auto out = folder_ / "out";
  fs::create_directories(out);
  export_model(source_, "first", {.path = out});
  EXPECT_NE(refused({.path = out}).find("is there already"), std::string::npos);
  write_file_at_once(out / "notes.txt", "mine");
  write_file_at_once(out / "vocabulary.txt", "of an earlier model");
  export_model(source_, "second", {.path = out, .replace = true});
  EXPECT_EQ(read_file(out / "README.md"), "second");
  EXPECT_EQ(read_file(out / "notes.txt"), "mine");
  EXPECT_FALSE(fs::exists(out / "vocabulary.txt"));
  fs::create_directories(folder_ / "other");
  write_file_at_once(folder_ / "other" / "thesis.tex", "years");
  for (const bool replace : {false, true}) {
    EXPECT_NE(refused({.path = folder_ / "other", .replace = replace}).find("something else"), std::string::npos);
    EXPECT_NE(refused({.path = folder_ / "saved", .replace = replace}).find("not a folder"), std::string::npos);
  }
  EXPECT_EQ(read_file(folder_ / "other" / "thesis.tex"), "years");
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().string().find(".part-"), std::string::npos) << "no temporary folder stays";
  }
}

TEST_F(ModelExportTest, AnArchiveHoldsOneFolderOfItsName) {
  EXPECT_TRUE(is_zip("a/b.zip"));
  EXPECT_FALSE(is_zip("a.zip/b"));
  const auto out = folder_ / "small.zip";
  export_model(source_, "card", {.path = out});
  EXPECT_NE(refused({.path = out}).find("is there already"), std::string::npos);
  export_model(source_, "card 2", {.path = out, .replace = true});
  const std::string unpack = "cd '" + folder_.path().string() + "' && /usr/bin/python3 -m zipfile -e small.zip un";
  ASSERT_EQ(std::system(unpack.c_str()), 0);
  EXPECT_EQ(read_file(folder_ / "un/small/README.md"), "card 2");
  EXPECT_EQ(load_model_config(folder_ / "un/small/model.safetensors"), portable_config(source_));
}

TEST_F(ModelExportTest, AnArchiveThatCannotBeWrittenIsAnError) {
  fs::create_directories(folder_ / "files");
  EXPECT_THROW(write_zip(folder_ / "no/such/folder.zip", folder_ / "files", "top"), FileError);
  write_file_at_once(folder_ / "files" / "a", "text");
  write_zip(folder_ / "a.zip", folder_ / "files", "top");
  EXPECT_TRUE(fs::exists(folder_ / "a.zip"));
}

}  // namespace
}  // namespace routing::model_export_test
