#include "routing/interchange/bundle/tensor_bundle.h"

#include "routing/core/error.h"
#include "routing/interchange/bundle/sorted_table.h"
#include "routing/interchange/bundle/wire_format.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace routing::tensor_bundle_test {
namespace {

namespace fs = std::filesystem;

const std::vector<float> kMatrix{1.0F, -2.0F, 0.5F, 4.0F, 1e-9F, 3e9F};
const std::vector<std::int64_t> kStep{3'530'000};

void write_two(const fs::path& prefix) {
  write_tensor_bundle(prefix, {{"w/kernel", NumberType::float32, {2, 3}, std::as_bytes(std::span(kMatrix))},
                               {"global_step", NumberType::int64, {}, std::as_bytes(std::span(kStep))}});
}

// An index of one variable "v" with the fields that a test wants.
void write_index(const fs::path& prefix, const std::string& header, const std::string& entry) {
  write_file_at_once(prefix.string() + ".index", sorted_table({{"", header}, {"v", entry}}));
}

std::string header_of(std::uint64_t shards) {
  std::string header;
  append_number_field(header, 1, shards);
  return header;
}

std::string entry_of(std::uint64_t type, std::int64_t size, std::uint64_t offset, std::uint64_t bytes) {
  std::string dimension, shape, entry;
  append_number_field(dimension, 1, static_cast<std::uint64_t>(size));
  append_text_field(shape, 2, dimension);
  append_number_field(entry, 1, type);
  append_text_field(entry, 2, shape);
  append_number_field(entry, 4, offset);
  append_number_field(entry, 5, bytes);
  return entry;
}

TEST(TensorBundle, WhatIsWrittenComesBack) {
  const TemporaryFolder folder;
  write_two(folder / "model.ckpt-7");
  EXPECT_EQ(folder.num_entries(), 2U);
  const TensorBundle bundle(folder / "model.ckpt-7");
  ASSERT_EQ(bundle.variables().size(), 2U);
  const BundleVariable& kernel = bundle.variables().at("w/kernel");
  EXPECT_EQ(kernel.type, NumberType::float32);
  EXPECT_EQ(kernel.dimensions, (Dimensions{2, 3}));
  const std::span<const std::byte> bytes = bundle.bytes("w/kernel");
  ASSERT_EQ(bytes.size(), 24U);
  EXPECT_EQ(std::memcmp(bytes.data(), kMatrix.data(), 24), 0);
  std::int64_t step = 0;
  ASSERT_EQ(bundle.bytes("global_step").size(), 8U);
  std::memcpy(&step, bundle.bytes("global_step").data(), 8);
  EXPECT_EQ(step, 3'530'000);
  EXPECT_EQ(bundle.variables().at("global_step").dimensions, Dimensions{});
}

// By name in the index and one after the other in the data, as TensorFlow's own writer leaves them.
TEST(TensorBundle, HandWorkedIndex) {
  const TemporaryFolder folder;
  const std::vector<float> one{1.0F};
  write_tensor_bundle(folder / "m", {{"b", NumberType::float32, {1}, std::as_bytes(std::span(one))},
                                     {"a", NumberType::float32, {}, std::as_bytes(std::span(one))}});
  const std::string index = read_file(folder / "m.index");
  const TableEntries entries = read_sorted_table(std::as_bytes(std::span(index)), "m.index");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].second, std::string("\x08\x01\x1a\x02\x08\x01", 6));  // 1 file, version {producer: 1}
  const std::uint32_t sum = masked_crc32c(std::as_bytes(std::span(one)));
  std::string checksum(1, '\x35');
  append_fixed32(checksum, sum);
  EXPECT_EQ(entries[1].second, std::string("\x08\x01\x12\x00\x28\x04", 6) + checksum);
  EXPECT_EQ(entries[2].second, std::string("\x08\x01\x12\x04\x12\x02\x08\x01\x20\x04\x28\x04", 12) + checksum);
}

TEST(TensorBundle, IsFoundByPrefixIndexOrFolder) {
  const TemporaryFolder folder;
  write_two(folder / "model.ckpt-7");
  const fs::path prefix = folder / "model.ckpt-7";
  EXPECT_EQ(bundle_prefix(prefix), prefix);
  EXPECT_EQ(bundle_prefix(folder / "model.ckpt-7.index"), prefix);
  EXPECT_EQ(bundle_prefix(folder.path()), prefix);
  write_two(folder / "model.ckpt-9");
  EXPECT_NE(message_of<FileError>([&] { bundle_prefix(folder.path()); }).find("(model.ckpt-7, model.ckpt-9)"),
            std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { bundle_prefix(folder / "other"); }).find("other.index is there"),
            std::string::npos);
  fs::create_directory(folder / "empty");
  EXPECT_NE(message_of<FileError>([&] { bundle_prefix(folder / "empty"); }).find("holds no *.index"),
            std::string::npos);
}

TEST(TensorBundle, DamagedNumbersAreNoticed) {
  const TemporaryFolder folder;
  write_two(folder / "m");
  const std::string data_file = folder / "m.data-00000-of-00001";
  std::string data = read_file(data_file);
  data[9] = static_cast<char>(data[9] ^ 1);
  write_file_at_once(data_file, data);
  const TensorBundle bundle(folder / "m");
  EXPECT_EQ(bundle.bytes("global_step").size(), 8U);
  EXPECT_NE(message_of<FileError>([&] { bundle.bytes("w/kernel"); }).find("variable 'w/kernel' has checksum"),
            std::string::npos);
  write_file_at_once(data_file, data.substr(0, 20));
  EXPECT_NE(message_of<FileError>([&] { TensorBundle(folder / "m").bytes("w/kernel"); }).find("the file has 20"),
            std::string::npos);
  fs::remove(data_file);
  EXPECT_THROW(TensorBundle(folder / "m"), FileError);
}

TEST(TensorBundle, EntriesThatDoNotFitAreRefused) {
  const TemporaryFolder folder;
  write_file_at_once(folder / "m.data-00000-of-00001", std::string(16, '\0'));
  const auto refusal = [&](const std::string& entry) {
    write_index(folder / "m", header_of(1), entry);
    return message_of<FileError>([&] { TensorBundle(folder / "m").bytes("v"); });
  };
  EXPECT_NE(refusal(entry_of(1, 5, 0, 16)).find("is float32 [5] but has 16 bytes"), std::string::npos);
  EXPECT_NE(refusal(entry_of(1, -4, 0, 16)).find("is float32 [-4] but has 16 bytes"), std::string::npos);
  EXPECT_NE(refusal(entry_of(1, std::int64_t{1} << 62, 0, 0)).find("but has 0 bytes"), std::string::npos);
  EXPECT_NE(refusal(entry_of(1, 4, 8, 16)).find("16 bytes at byte 8, but the file has 16"), std::string::npos);
  EXPECT_NE(refusal(entry_of(1, 4, ~std::uint64_t{7}, 16)).find("but the file has 16"), std::string::npos);
  EXPECT_NE(refusal(entry_of(7, 4, 0, 16)).find("TensorFlow's type 7"), std::string::npos);
  std::string in_slices = entry_of(1, 4, 0, 16);
  append_text_field(in_slices, 7, "");
  EXPECT_NE(refusal(in_slices).find("stored in slices"), std::string::npos);
  std::string elsewhere = entry_of(1, 4, 0, 16);
  append_number_field(elsewhere, 3, 1);
  EXPECT_NE(refusal(elsewhere).find("lies in file 1, but there are 1"), std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { TensorBundle(folder / "m").bytes("w"); }).find("'w' is not there"),
            std::string::npos);
}

TEST(TensorBundle, HeadersThatDoNotFitAreRefused) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& header) {
    write_index(folder / "m", header, "");
    return message_of<FileError>([&] { TensorBundle bundle(folder / "m"); });
  };
  EXPECT_NE(refusal(header_of(0)).find("there are 0 files"), std::string::npos);
  EXPECT_NE(refusal(header_of(1'000'000'000)).find("1000000000 files"), std::string::npos);
  EXPECT_NE(refusal(header_of(1) + "\x10\x01").find("big-endian"), std::string::npos);
  EXPECT_NE(refusal(header_of(1) + "\x1a\x02\x10\x02").find("readers of version 2"), std::string::npos);
  write_file_at_once(folder / "m.index", sorted_table({{"v", ""}}));
  EXPECT_NE(message_of<FileError>([&] { TensorBundle bundle(folder / "m"); }).find("has no header"), std::string::npos);
}

TEST(TensorBundle, NamesAndBytesOfNewTensorsAreChecked) {
  const TemporaryFolder folder;
  const BundleTensor good{"a", NumberType::float32, {2, 3}, std::as_bytes(std::span(kMatrix))};
  BundleTensor wrong = good;
  wrong.dimensions = {2, 2};
  EXPECT_THROW(write_tensor_bundle(folder / "m", {wrong}), InputError);
  EXPECT_THROW(write_tensor_bundle(folder / "m", {good, good}), InputError);
  wrong = good;
  wrong.name = "";
  EXPECT_THROW(write_tensor_bundle(folder / "m", {wrong}), InputError);
  EXPECT_EQ(folder.num_entries(), 0U);
}

TEST(TensorBundle, SeveralFilesOfNumbersAreRead) {
  const TemporaryFolder folder;
  const std::string four("\x01\x00\x00\x00", 4);
  write_file_at_once(folder / "m.data-00000-of-00002", std::string(3, 'x'));
  write_file_at_once(folder / "m.data-00001-of-00002", "y" + four);
  std::string entry = entry_of(3, 1, 1, 4);
  append_number_field(entry, 3, 1);
  append_fixed32_field(entry, 6, masked_crc32c(std::as_bytes(std::span(four))));
  write_index(folder / "m", header_of(2), entry);
  const TensorBundle bundle(folder / "m");
  EXPECT_EQ(bundle.variables().at("v").type, NumberType::int32);
  EXPECT_EQ(std::to_integer<int>(bundle.bytes("v")[0]), 1);
}

}  // namespace
}  // namespace routing::tensor_bundle_test
