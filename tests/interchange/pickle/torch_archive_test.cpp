#include "routing/interchange/pickle/torch_archive.h"

#include "interchange/pickle/pickle_bytes.h"
#include "routing/core/error.h"
#include "support/temporary_folder.h"
#include "test_paths.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace routing::torch_archive_test {
namespace {

template <class Number>
std::vector<Number> numbers_in(const TorchTensor& tensor) {
  std::vector<Number> numbers(tensor.bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  return numbers;
}

// What PyTorch 1.13 itself wrote: scripts/state_dict_values.py, which says what is in it.
TEST(TorchArchive, ReadsWhatPyTorchWrote) {
  const std::filesystem::path path =
      std::filesystem::path(ROUTING_SOURCE_DIR) / "tests/interchange/golden/state_dict.pt";
  std::map<std::string, TorchTensor> tensors;
  for (const TorchTensor& tensor : read_torch_archive(path)) tensors[tensor.name] = tensor;
  ASSERT_EQ(tensors.size(), 10U);
  EXPECT_EQ(tensors["linear.weight"].dimensions, (Dimensions{2, 3}));
  EXPECT_EQ(numbers_in<float>(tensors["linear.weight"]), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers_in<float>(tensors["linear.bias"]), (std::vector<float>{-1, 0.5}));
  EXPECT_EQ(tensors["transposed"].dimensions, (Dimensions{3, 2}));
  EXPECT_EQ(numbers_in<float>(tensors["transposed"]), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(numbers_in<float>(tensors["part"]), (std::vector<float>{4, 5}));
  EXPECT_EQ(tensors["step"].dimensions, Dimensions{});
  EXPECT_EQ(numbers_in<std::int64_t>(tensors["step"]), (std::vector<std::int64_t>{3'530'000'000}));
  EXPECT_EQ(tensors["initted"].type, NumberType::boolean);
  EXPECT_EQ(numbers_in<std::uint8_t>(tensors["initted"]), (std::vector<std::uint8_t>{1}));
  EXPECT_EQ(numbers_in<double>(tensors["double"]), (std::vector<double>{0.1}));
  EXPECT_EQ(tensors["half"].type, NumberType::float16);
  EXPECT_EQ(numbers_in<std::uint16_t>(tensors["half"]), (std::vector<std::uint16_t>{0x3e00}));  // 1.5
  EXPECT_EQ(numbers_in<std::uint16_t>(tensors["bfloat"]), (std::vector<std::uint16_t>{0x3fc0}));
  EXPECT_EQ(tensors["nothing"].dimensions, (Dimensions{0, 4}));
}

TEST(TorchArchive, ViewsOfSeveralStoragesComeInTheOrderOfTheirNames) {
  const TemporaryFolder folder;
  const auto bytes_of_floats = [](const std::vector<float>& numbers) {
    return std::string(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size());
  };
  const auto number_at = [](const std::string& storage, std::int64_t offset) {
    return tensor_of({.storage = storage_of("FloatStorage", storage, 2),
                      .offset = number_of(offset),
                      .size = numbers_of({1}),
                      .stride = numbers_of({1})});
  };
  const std::string pickle = pickle_of(dictionary_of(
      {{"d", number_at("1", 1)}, {"a", number_at("0", 1)}, {"c", number_at("1", 0)}, {"b", number_at("0", 0)}}));
  write_archive(
      folder / "a.pt",
      {{"a/data.pkl", pickle}, {"a/data/0", bytes_of_floats({10, 11})}, {"a/data/1", bytes_of_floats({20, 21})}});
  std::vector<std::pair<std::string, float>> found;
  for (const TorchTensor& tensor : read_torch_archive(folder / "a.pt")) {
    found.emplace_back(tensor.name, numbers_in<float>(tensor).at(0));
  }
  EXPECT_EQ(found, (std::vector<std::pair<std::string, float>>{{"d", 21}, {"a", 11}, {"c", 20}, {"b", 10}}));
}

// Under the sanitizer of undefined behaviour the product of the sides was a finding.
TEST(TorchArchive, EmptyTensorsMayHaveSidesWithoutAProduct) {
  const TemporaryFolder folder;
  const std::int64_t side = std::int64_t{1} << 62U;
  const std::string view = tensor_of({.size = numbers_of({0, side, side}), .stride = numbers_of({1, side, 1})});
  write_archive(folder / "a.pt",
                {{"a/data.pkl", pickle_of(dictionary_of({{"w", view}}))}, {"a/data/0", std::string(16, '\0')}});
  const std::vector<TorchTensor> tensors = read_torch_archive(folder / "a.pt");
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors[0].dimensions, (Dimensions{0, side, side}));
  EXPECT_TRUE(tensors[0].bytes.empty());
}

TEST(TorchArchive, GathersAViewAndReadsOneEntry) {
  const TemporaryFolder folder;
  const std::vector<float> storage{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::string bytes(reinterpret_cast<const char*>(storage.data()), 40);
  const std::string view = tensor_of({.storage = storage_of("FloatStorage", "0", 10),
                                      .offset = number_of(1),
                                      .size = numbers_of({2, 2, 2}),
                                      .stride = numbers_of({1, 4, 2})});
  const std::string pickle = pickle_of(dictionary_of({{"model", dictionary_of({{"w", view}})}}));
  write_archive(folder / "a.pt", {{"a/data.pkl", pickle}, {"a/data/0", bytes}, {"a/byteorder", "little"}});
  const std::vector<TorchTensor> tensors = read_torch_archive(folder / "a.pt", "model");
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(numbers_in<float>(tensors[0]), (std::vector<float>{1, 3, 5, 7, 2, 4, 6, 8}));
}

}  // namespace
}  // namespace routing::torch_archive_test
