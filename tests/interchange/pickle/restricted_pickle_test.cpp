#include "routing/interchange/pickle/restricted_pickle.h"

#include "interchange/pickle/pickle_bytes.h"
#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

namespace routing::restricted_pickle_test {
namespace {

std::vector<PickledTensor> read(const std::string& pickle, const std::string& entry = {}) {
  return read_pickled_tensors(std::as_bytes(std::span(pickle)), "file", entry);
}

TEST(RestrictedPickle, ReadsTensorsOfAStateDict) {
  const std::string bias = tensor_of({.storage = storage_of("HalfStorage", "7", 10),
                                      .offset = number_of(4),
                                      .size = numbers_of({3}),
                                      .stride = numbers_of({2})});
  const auto tensors = read(pickle_of(dictionary_of({{"w", tensor_of({})}, {"b", bias}})));
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "w");
  EXPECT_EQ(tensors[0].storage, "0");
  EXPECT_EQ(tensors[0].type, NumberType::float32);
  EXPECT_EQ(tensors[0].storage_count, 4U);
  EXPECT_EQ(tensors[0].dimensions, (Dimensions{2, 2}));
  EXPECT_EQ(tensors[0].strides, (Dimensions{2, 1}));
  EXPECT_EQ(tensors[1].name, "b");
  EXPECT_EQ(tensors[1].type, NumberType::float16);
  EXPECT_EQ(tensors[1].offset, 4U);
}

TEST(RestrictedPickle, TakesAPlainDictAParameterAndTheModulesVersions) {
  const std::string parameter =
      function_of("torch._utils", "_rebuild_parameter") + tuple_of({tensor_of({}), "\x88", empty_dictionary()}) + "R";
  EXPECT_EQ(read(pickle_of("}" + string_of("w") + parameter + "s")).front().name, "w");
  const std::string versions =
      "}" + string_of("_metadata") + dictionary_of({{"", "}" + string_of("version") + "K\x01s"}}) + "s";
  EXPECT_EQ(read(pickle_of(dictionary_of({{"w", tensor_of({})}}) + versions + "b")).size(), 1U);
}

TEST(RestrictedPickle, TakesOneEntryOfACheckpoint) {
  const std::string whole = pickle_of(dictionary_of({{"step", "M\x10\x27"},
                                                     {"lr", "G" + std::string(8, '\0')},
                                                     {"model", dictionary_of({{"w", tensor_of({})}})},
                                                     {"names", "](" + string_of("a") + "Ne"},
                                                     {"old", "J\xff\xff\xff\xff"}}));
  EXPECT_EQ(read(whole, "model").front().name, "w");
  EXPECT_NE(message_of<FileError>([&] { read(whole); })
                .find("entry 'step' is the number 10000, but a tensor was expected; the entries are step, lr, model, "
                      "names, old"),
            std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { read(whole, "net"); }).find("no entry 'net'; it has step, lr, model"),
            std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { read(whole, "old"); }).find("'old' is the number -1"), std::string::npos);
}

TEST(RestrictedPickle, ValuesAreRememberedAndRecalled) {
  const std::string twice = "}(" + string_of("a") + tensor_of({}) + "q\x05" + string_of("b") + "h\x05" +
                            string_of("c") + "j\x05" + std::string(3, '\0') + "u";
  EXPECT_EQ(read(pickle_of(twice)).size(), 3U);
  EXPECT_EQ(read(pickle_of(twice)).back().storage_count, 4U);
}

TEST(RestrictedPickle, ScalarsAndEmptyTensorsFit) {
  const std::string scalar = tensor_of({.size = ")", .stride = ")"});
  EXPECT_EQ(read(pickle_of(dictionary_of({{"s", scalar}}))).front().dimensions, Dimensions{});
  const std::string nothing = tensor_of(
      {.storage = storage_of("LongStorage", "1", 0), .size = numbers_of({3, 0}), .stride = numbers_of({1, 1})});
  EXPECT_EQ(read(pickle_of(dictionary_of({{"e", nothing}}))).front().dimensions, (Dimensions{3, 0}));
}

}  // namespace
}  // namespace routing::restricted_pickle_test
