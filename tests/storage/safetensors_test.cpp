#include "routing/storage/safetensors.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::safetensors_test {
namespace {

namespace fs = std::filesystem;

// What write_safetensors says of this tensor under the name "x", without the path.
std::string refusal(const TensorFile& file) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.safetensors";
  const std::string message = message_of<FileError>([&] { write_safetensors(path, file); });
  EXPECT_EQ(folder.num_entries(), 0U);
  EXPECT_EQ(message.rfind(path.string() + ": ", 0), 0U) << message;
  return message.substr(std::min(message.size(), path.string().size() + 2));
}

void expect_same(const at::Tensor& read, const at::Tensor& written) {
  EXPECT_EQ(read.scalar_type(), written.scalar_type());
  EXPECT_EQ(read.sizes(), written.sizes());
  EXPECT_TRUE(read.is_contiguous());
  EXPECT_TRUE(at::equal(read, written));
}

// Worked by hand from the description of the format. The header has 26 + 55 + 53 = 134 bytes and two spaces: 0x88.
TEST(Safetensors, TheBytesAreThoseWorkedByHand) {
  const TemporaryFolder folder;
  TensorFile file;
  file.tensors["b"] = at::tensor({1, 2, 255}, at::kByte);
  file.tensors["a"] = at::tensor({1.0F, -2.0F}, at::kFloat).view({1, 2});
  file.metadata["k"] = "v";
  write_safetensors(folder / "a", file);
  std::string expected = std::string("\x88\0\0\0\0\0\0\0", 8) +
                         R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                         R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  expected.resize(8 + 0x88, ' ');
  expected += std::string("\0\0\x80\x3F\0\0\0\xC0", 8) + "\x01\x02\xFF";
  EXPECT_EQ(read_file(folder / "a"), expected);
}

TEST(Safetensors, HandWrittenBytesAreRead) {
  const TemporaryFolder folder;
  // Line breaks, another order of keys and fields, an escaped letter, and no padding: all legal.
  const std::string header =
      "{\n\"n\\u0061me\":\t{\"data_offsets\":[2,6],\"shape\":[2],\"dtype\":\"I16\"},\n"
      "\"first\":{\"dtype\":\"BOOL\",\"shape\":[2,1],\"data_offsets\":[0,2]}}\n";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  bytes += header + std::string("\x01\0", 2) + std::string("\x02\x01\xFF\xFF", 4);
  write_file_at_once(folder / "a", bytes);
  const TensorFile file = read_safetensors(folder / "a");
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_TRUE(file.metadata.empty());
  expect_same(file.tensors.at("name"), at::tensor({258, -1}, at::kShort));
  expect_same(file.tensors.at("first"), at::tensor({1, 0}, at::kByte).to(at::kBool).view({2, 1}));
}

TEST(Safetensors, EveryDtypeAndShapeComesBack) {
  const TemporaryFolder folder;
  TensorFile file;
  for (const at::ScalarType type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf,
                                    at::kBFloat16, at::kFloat, at::kDouble}) {
    const std::string name = c10::toString(type);
    const at::Tensor values = at::arange(24, at::kDouble).sub_(7.0).mul_(1.25);
    // Bools are 0 or 1, and unsigned values not negative.
    const at::Tensor cast = (type == at::kBool || type == at::kByte ? values.abs() : values).to(type);
    file.tensors[name + ".cube"] = cast.view({2, 3, 4});
    file.tensors[name + ".scalar"] = cast[5].clone();
    file.tensors[name + ".empty"] = at::empty({3, 0, 2}, type);
    file.tensors[name + ".none"] = at::empty({0}, type);
  }
  file.metadata = {{"", "empty key"}, {"line", "a\n\"b\" \xC3\xA4"}, {"empty", ""}};
  write_safetensors(folder / "a", file);
  const TensorFile read = read_safetensors(folder / "a");
  ASSERT_EQ(read.tensors.size(), 40U);
  for (const auto& [name, tensor] : file.tensors) {
    SCOPED_TRACE(name);
    expect_same(read.tensors.at(name), tensor);
  }
  EXPECT_EQ(read.metadata, file.metadata);
  EXPECT_EQ(read_safetensors_metadata(folder / "a"), file.metadata);
}

TEST(Safetensors, SpecialValuesKeepTheirBits) {
  const TemporaryFolder folder;
  TensorFile file;
  file.tensors["x"] = at::tensor({0x7FC00001, static_cast<int>(0x80000000), 0x7F800000, 1}, at::kInt).view(at::kFloat);
  write_safetensors(folder / "a", file);
  const TensorFile read = read_safetensors(folder / "a");
  EXPECT_TRUE(at::equal(read.tensors.at("x").view(at::kInt), file.tensors.at("x").view(at::kInt)));
}

TEST(Safetensors, NothingAtAllIsAFileToo) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {});
  EXPECT_EQ(read_file(folder / "a"), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_TRUE(read_safetensors(folder / "a").tensors.empty());
}

TEST(Safetensors, StridesAreStoredRowByRow) {
  const TemporaryFolder folder;
  const at::Tensor base = at::arange(12, at::kFloat).view({3, 4});
  TensorFile file;
  file.tensors["transposed"] = base.t();
  file.tensors["column"] = at::arange(12, at::kFloat).view({3, 4}).select(1, 2);
  file.tensors["expanded"] = at::full({1}, 5.0F).expand({3});
  file.tensors["parameter"] = at::ones({2}).requires_grad_();
  write_safetensors(folder / "a", file);
  const TensorFile read = read_safetensors(folder / "a");
  for (const auto& [name, tensor] : file.tensors) {
    SCOPED_TRACE(name);
    expect_same(read.tensors.at(name), tensor);
    EXPECT_FALSE(read.tensors.at(name).requires_grad());
  }
}

TEST(Safetensors, LargerTypesComeFirstSoThatAllAreAligned) {
  const TemporaryFolder folder;
  TensorFile file;
  file.tensors["a"] = at::ones({3}, at::kByte);
  file.tensors["b"] = at::ones({1}, at::kShort);
  file.tensors["c"] = at::ones({1}, at::kDouble);
  file.tensors["d"] = at::ones({1}, at::kLong);
  write_safetensors(folder / "a", file);
  const std::string text = read_file(folder / "a");
  EXPECT_NE(text.find(R"("c":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"d":{"dtype":"I64")"), std::string::npos);
  EXPECT_NE(text.find(R"("b":{"dtype":"I16","shape":[1],"data_offsets":[16,18]},"a":{"dtype":"U8")"),
            std::string::npos);
}

TEST(Safetensors, ReadTensorsOutliveTheFile) {
  const TemporaryFolder folder;
  TensorFile file;
  file.tensors["x"] = at::arange(1000);
  write_safetensors(folder / "a", file);
  const TensorFile read = read_safetensors(folder / "a");
  fs::remove(folder / "a");
  read.tensors.at("x").add_(1);
  EXPECT_TRUE(at::equal(read.tensors.at("x"), at::arange(1, 1001)));
}

TEST(Safetensors, TensorsThatShareMemoryAreRefusedByName) {
  const at::Tensor base = at::zeros({4, 4});
  const std::string reason = " share memory and would be two after reading; store one and note the tie in the metadata";
  EXPECT_EQ(refusal({.tensors = {{"embedding", base}, {"head", base}}}), "tensors 'embedding' and 'head'" + reason);
  EXPECT_EQ(refusal({.tensors = {{"all", base}, {"other", at::zeros({2})}, {"row", base[3]}}}),
            "tensors 'all' and 'row'" + reason);
  EXPECT_EQ(refusal({.tensors = {{"t", base.t()}, {"diagonal", base.diagonal()}}}),
            "tensors 'diagonal' and 't'" + reason);
  // Parts that do not overlap are stored apart.
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {.tensors = {{"top", base.narrow(0, 0, 2)}, {"bottom", base.narrow(0, 2, 2)}}});
  EXPECT_EQ(read_safetensors(folder / "a").tensors.size(), 2U);
}

TEST(Safetensors, WhatCannotBeStoredIsRefusedByName) {
  EXPECT_EQ(
      refusal({.tensors = {{"x", at::zeros({2}, at::kComplexFloat)}}}),
      "tensor 'x' has dtype ComplexFloat, which cannot be stored; convert it to bool, uint8, int8 to int64, float16, "
      "bfloat16, float32 or float64");
  EXPECT_EQ(refusal({.tensors = {{"x", at::Tensor()}}}), "tensor 'x' is undefined; leave it out or give it values");
  EXPECT_EQ(refusal({.tensors = {{"x", at::eye(2).to_sparse()}}}),
            "tensor 'x' is sparse; make it dense before writing");
  EXPECT_EQ(refusal({.tensors = {{"__metadata__", at::zeros({2})}}}),
            "tensor '__metadata__' has a name that the format keeps for itself; rename it");
  EXPECT_EQ(refusal({.tensors = {{"x\xFF", at::zeros({2})}}}),
            "tensor 'x\xFF' has a name that is not UTF-8; rename it");
  EXPECT_EQ(refusal({.metadata = {{"k", "\xC3"}}}),
            "metadata 'k' is not UTF-8; store only text, other things as tensors");
}

TEST(Safetensors, MissingFilesAndFoldersAreNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<FileError>([&] { read_safetensors(folder / "missing"); }),
            (folder / "missing").string() + ": cannot be read: No such file or directory; check the name");
  EXPECT_THROW(read_safetensors_metadata(folder.path()), FileError);
  EXPECT_THROW(write_safetensors(folder.path(), {}), FileError);
}

}  // namespace
}  // namespace routing::safetensors_test
