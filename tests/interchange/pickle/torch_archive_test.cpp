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
