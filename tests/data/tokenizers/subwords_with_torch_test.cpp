// libsentencepiece and libtorch have a protobuf each and crash if linked together: the plug-in keeps them apart.
#include "data/hostile_texts.h"
#include "routing/data/tokenizers/subword_trainer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::subwords_with_torch_test {
namespace {

TEST(SubwordsWithTorch, BothWorkInOneProcess) {
  EXPECT_EQ(at::ones({3, 4}).sum().item<float>(), 12.0F);
  std::string text;
  for (int line = 0; line < 300; ++line) text += "the cat number " + std::to_string(line) + " sat on the mat\n";
  SubwordTrainer trainer({.vocabulary_size = 400});
  trainer.add(text);
  const auto subwords = trainer.train();
  for (const std::string& hostile : hostile_texts()) {
    std::vector<std::int32_t> ids;
    subwords->encode(hostile, ids);
    EXPECT_EQ(subwords->decode(ids), hostile);
  }
  EXPECT_EQ(at::ones({3, 4}).matmul(at::ones({4, 5})).sum().item<float>(), 60.0F);
}

}  // namespace
}  // namespace routing::subwords_with_torch_test
