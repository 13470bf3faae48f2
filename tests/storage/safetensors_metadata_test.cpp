#include "routing/storage/safetensors_metadata.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/model/weights.h"
#include "routing/storage/safetensors.h"
#include "support/message_of.h"
#include "support/small_experiment.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::safetensors_metadata_test {
namespace {

TEST(SafetensorsMetadata, ATextIsAddedAndReplacedAndEverythingElseKeepsItsBytes) {
  const TemporaryFolder folder;
  const auto path = folder / "file.safetensors";
  const TensorFile file{.tensors = {{"b", at::arange(7, at::kFloat)},
                                    {"a \"name\"", at::arange(3, at::kByte)},
                                    {"none", at::empty({0, 4})}},
                        .metadata = {{"format", "pt"}, {"config", "x = \"ü\"\n"}}};
  write_safetensors(path, file);
  for (const std::string text : {"first", "second, longer, with \"quotes\" and ü", ""}) {
    set_safetensors_metadata(path, "audit", text);
    const TensorFile found = read_safetensors(path);
    auto expected = file.metadata;
    expected["audit"] = text;
    EXPECT_EQ(found.metadata, expected);
    ASSERT_EQ(found.tensors.size(), file.tensors.size());
    for (const auto& [name, tensor] : file.tensors) EXPECT_TRUE(at::equal(found.tensors.at(name), tensor)) << name;
  }
  EXPECT_EQ(folder.num_entries(), 1U) << "no temporary file stays";
  // The very bytes that writing it at once would give.
  const auto whole = folder / "whole.safetensors";
  write_safetensors(whole, read_safetensors(path));
  EXPECT_EQ(read_file(whole), read_file(path));
}

TEST(SafetensorsMetadata, ACopyHasTheNewTextsAndTheSameTensorsAndTheOriginalStays) {
  const TemporaryFolder folder;
  const auto path = folder / "file.safetensors";
  const TensorFile file{.tensors = {{"a", at::arange(7, at::kFloat)}}, .metadata = {{"config", "x"}, {"kept", "k"}}};
  write_safetensors(path, file);
  const std::string before = read_file(path);
  copy_safetensors(path, folder / "copy", {{"config", "y"}, {"new", "z"}});
  const TensorFile found = read_safetensors(folder / "copy");
  EXPECT_EQ(found.metadata, (std::map<std::string, std::string>{{"config", "y"}, {"kept", "k"}, {"new", "z"}}));
  EXPECT_TRUE(at::equal(found.tensors.at("a"), file.tensors.at("a")));
  EXPECT_EQ(read_file(path), before);
}

TEST(SafetensorsMetadata, DamageAndWrongTextsAreRefusedAndLeaveTheFile) {
  const TemporaryFolder folder;
  const auto path = folder / "file.safetensors";
  write_safetensors(path, {.tensors = {{"a", at::arange(3)}}});
  const std::string before = read_file(path);
  EXPECT_NE(message_of<FileError>([&] { set_safetensors_metadata(path, "audit", "\xff"); }).find("not UTF-8"),
            std::string::npos);
  EXPECT_EQ(read_file(path), before);
  write_file_at_once(path, before.substr(0, before.size() - 1));
  EXPECT_FALSE(message_of<FileError>([&] { set_safetensors_metadata(path, "audit", "text"); }).empty());
  EXPECT_EQ(read_file(path), before.substr(0, before.size() - 1));
  EXPECT_FALSE(message_of<FileError>([&] { set_safetensors_metadata(folder / "nothing", "a", "b"); }).empty());
}

TEST(ModelAudit, IsANoteOfTheFileAndTheModelStaysTheSame) {
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const auto model = make_model(small_experiment(), at::TensorOptions().dtype(at::kFloat));
  save_model(path, *model, {.version = "1", .tokenizer_hash = "ab", .data_label = "partial data"});
  EXPECT_EQ(load_model_notes(path).audit, "");
  set_model_audit(path, "causal; tried");
  const ModelNotes notes = load_model_notes(path);
  EXPECT_EQ(notes.audit, "causal; tried");
  EXPECT_EQ(notes.tokenizer_hash, "ab");
  EXPECT_EQ(notes.data_label, "partial data");
  const auto again = load_sequence_model(path);
  for (const auto& [name, tensor] : named_tensors(*model)) {
    EXPECT_TRUE(at::equal(named_tensors(*again).at(name), tensor)) << name;
  }
  save_model(path, *model, notes);
  EXPECT_EQ(load_model_notes(path).audit, "causal; tried");
}

}  // namespace
}  // namespace routing::safetensors_metadata_test
