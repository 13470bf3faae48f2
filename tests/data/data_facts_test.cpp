// What a folder of prepared data says of itself, when it says nonsense.
#include "routing/core/error.h"
#include "routing/data/prepared.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace routing::data_facts_test {
namespace {

TEST(DataFacts, ThatAreMissingOrImpossibleAreRefusedByTheirFile) {
  const TemporaryFolder folder;
  const std::string format =
      R"("routing_data":1,"format":"text","tokens":"bytes","tokenizer_hash":"","missing":"","cut":"",)";
  const auto refusal_of = [&](const std::string& json) {
    std::ofstream(folder / "data.json", std::ios::binary) << "{" << json << "}";
    return message_of<FileError>([&] { read_data_facts(folder.path()); });
  };
  const auto expect_words = [&](const std::string& json, const std::string& words) {
    const std::string refusal = refusal_of(json);
    EXPECT_NE(refusal.find("data.json: "), std::string::npos) << refusal;
    EXPECT_NE(refusal.find(words), std::string::npos) << refusal;
  };
  expect_words(R"("routing_data":1)", "format");
  // Written out by recursion these would take more stack than there is.
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  expect_words(R"("routing_data":)" + deep, "is of version array");
  expect_words(format + R"("vocabulary_size":)" + deep, "vocabulary_size is array");
  expect_words(R"("routing_data":1,"format":7)", "number");
  expect_words(format + R"("vocabulary_size":1e300,"image_height":0,"image_width":0)", "vocabulary_size is 1e+300");
  expect_words(format + R"("vocabulary_size":0,"image_height":0,"image_width":0)", "from 1 to 2147483648");
  expect_words(format + R"("vocabulary_size":256,"image_height":-1,"image_width":8)", "image_height is -1");
  expect_words(format + R"("vocabulary_size":256,"image_height":0,"image_width":8)", "images of 0 x 8");
  expect_words(format + R"("vocabulary_size":256,"image_height":9000,"image_width":8)", "images of 9000 x 8");
}

}  // namespace
}  // namespace routing::data_facts_test
