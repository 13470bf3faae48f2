// routing data tokenizer as a user runs it: of prepared data, runs and files, and refusals.
#include "cli/program_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace routing::data_tokenizer_test {
namespace {

using Json = nlohmann::json;

class CliDataTokenizer : public Cli {
 protected:
  CliDataTokenizer() {
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 300; ++i) text << "line " << i * i % 89 << " of a text\n";
  }
  std::string answer(const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    return outcome.out;
  }
};

TEST_F(CliDataTokenizer, PreparedDataARunAndTheVocabularyItselfGiveTheSame) {
  answer("data prepare text --tokens words --out prepared --quiet");
  const std::string said = answer("data tokenizer prepared --out tokenizer.json");
  EXPECT_EQ(said.rfind("tokenizer.json   words, ", 0), 0U) << said;
  const std::string made = text_of(folder_ / "tokenizer.json");
  const auto vocabulary = Json::parse(made).at("model").at("vocab");
  EXPECT_EQ(vocabulary.at("\n"), 0);
  EXPECT_EQ(vocabulary.at("line"), 1);
  EXPECT_EQ(answer("data tokenizer prepared/vocabulary.txt"), made);
  answer(
      "train --preset my-words --data prepared --out run --quiet --steps 1 --set model.width=16 --set model.layers=1"
      " --set model.feedforward_width=16 --set model.embedding_width=0 --set attention.heads=2"
      " --set attention.content_heads=1 --set attention.content_layers=all --set train.sequence_length=32"
      " --set local.window=8 --set routing.window=8 --set train.eval_tokens=32");
  EXPECT_EQ(answer("data tokenizer run"), made);
  EXPECT_EQ(answer("data tokenizer run/checkpoints/step-00000001/model.safetensors"), made);
}

TEST_F(CliDataTokenizer, SubwordsBecomeMerges) {
  answer("data prepare text --tokens subwords --vocabulary-size 300 --out prepared --quiet");
  const auto made = Json::parse(answer("data tokenizer prepared/subwords.model"));
  EXPECT_EQ(made.at("model").at("type"), "BPE");
  EXPECT_EQ(made.at("model").at("vocab").at("</s>"), 0);
  EXPECT_FALSE(made.at("model").at("merges").empty());
}

TEST_F(CliDataTokenizer, WhatHasNoTokensOfTextIsRefused) {
  std::ofstream(folder_ / "words") << "the\nfox\n";
  const Outcome no_list = run("data tokenizer words");
  EXPECT_EQ(no_list.exit_code, 1);
  EXPECT_TRUE(contains(no_list.err, "words: ") && contains(no_list.err, "<eos>")) << no_list.err;
  const Outcome nothing = run("data tokenizer no/such/run");
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_TRUE(contains(nothing.err, "no/such/run")) << nothing.err;
  fs::create_directories(folder_ / "cifar");
  std::ofstream(folder_ / "cifar/data_batch_1.bin", std::ios::binary) << std::string(3073L * 60, '\3');
  answer("data prepare cifar --out images --quiet");
  expect_refused("data tokenizer images", {"images: its tokens are subpixels", "bytes, words and subwords"});
}

}  // namespace
}  // namespace routing::data_tokenizer_test
