#include "routing/data/tokenizers/tokenizer_json.h"

#include "data/hostile_texts.h"
#include "data/tokenizers/json_reader.h"
#include "data/tokenizers/model_writer.h"
#include "routing/core/error.h"
#include "routing/data/tokenizers/byte_tokenizer.h"
#include "routing/data/tokenizers/subword_trainer.h"
#include "routing/data/tokenizers/subwords.h"
#include "routing/data/tokenizers/word_vocabulary.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <sentencepiece_trainer.h>
#include <string>
#include <unordered_map>
#include <vector>

namespace routing::tokenizer_json_test {
namespace {

using Ids = std::vector<std::int32_t>;

const std::string kMark = "\xE2\x96\x81";

std::vector<std::string> sentences() {
  return {"The quick brown fox jumps over the lazy dog.",
          "Na\xC3\xAFve caf\xC3\xA9s serve cr\xC3\xA8me br\xC3\xBBl\xC3\xA9"
          "e at 5 o'clock;  the d\xC3\xA9j\xC3\xA0 vu was real!",
          "It was the best of times, it was the worst of times,\nit was the age of wisdom\n\n it was the age of "
          "foolishness",
          "  def f(x):\n\treturn  x + 1   # a comment \n",
          "ababababa aaaaaaaaa bananarama Mississippi tattoo",
          "\xD0\x9F\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82, \xE4\xB8\x96\xE7\x95\x8C! "
          "\xF0\x9F\x98\x80\xF0\x9F\x98\x80 end"};
}

std::vector<std::string> texts() {
  std::vector<std::string> all = sentences();
  for (const std::string& text : hostile_texts()) all.push_back(text);
  return all;
}

std::string learned_text() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    for (const std::string& sentence : sentences()) text += sentence.substr(static_cast<std::size_t>(i) % 7) + "\n";
  }
  return text;
}

// Every text has the same ids here and there. Other programs hold texts as UTF-8, and subwords cannot tell U+2581.
void expect_equal_ids(const Tokenizer& ours, const std::string& json, bool with_marks) {
  const JsonReader theirs(json);
  int compared = 0;
  for (const std::string& text : texts()) {
    if (!with_marks && text.find(kMark) != std::string::npos) continue;
    Ids ids;
    ours.encode(text, ids);
    EXPECT_EQ(theirs.ids(text), ids) << "'" << text.substr(0, 200) << "'";
    ++compared;
  }
  EXPECT_GE(compared, 25);
}

// A model of SentencePiece's own trainer.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::vector<std::string> lines) : lines_(std::move(lines)) {}
  bool done() const override { return at_ == lines_.size(); }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override { ++at_; }

 private:
  std::vector<std::string> lines_;
  std::size_t at_ = 0;
};

std::string trained(const std::string& kind, const std::unordered_map<std::string, std::string>& more) {
  std::vector<std::string> lines;
  for (int i = 0; i < 20; ++i) {
    for (const std::string& sentence : sentences()) lines.push_back(sentence.substr(static_cast<std::size_t>(i) % 5));
  }
  Lines iterator(lines);
  std::unordered_map<std::string, std::string> options{{"model_type", kind},
                                                       {"vocab_size", "400"},
                                                       {"hard_vocab_limit", "false"},
                                                       {"minloglevel", "4"},
                                                       {"num_threads", "1"}};
  for (const auto& [name, value] : more) options[name] = value;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &iterator, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return model;
}

TEST(TokenizerJson, BytesAreTheirValues) {
  const std::string json = tokenizer_json("bytes", "");
  EXPECT_EQ(JsonReader(json).ids("A \xC3\xA9\n"), (Ids{65, 32, 0xC3, 0xA9, 10}));
  expect_equal_ids(ByteTokenizer(), json, true);
}

TEST(TokenizerJson, WordsKnowLineEndsAndUnknownWords) {
  const std::vector<std::string> words{"<eos>", "the", "<unk>", "fox", "\xC3\xA9t\xC3\xA9", "it", "was"};
  std::string file;
  for (const std::string& word : words) file += word + "\n";
  const std::string json = tokenizer_json("words", file);
  EXPECT_EQ(JsonReader(json).ids(" the\tfox \n\n<eos> \xC3\xA9t\xC3\xA9 <unk>x"), (Ids{1, 3, 0, 0, 2, 4, 2}));
  expect_equal_ids(WordVocabulary(words), json, true);
}

TEST(TokenizerJson, SubwordsMadeHereHaveTheSameIds) {
  SubwordTrainer trainer({.vocabulary_size = 500});
  trainer.add(learned_text());
  const auto subwords = trainer.train();
  const std::string model = [&] {
    const std::string path = testing::TempDir() + "/tokenizer_json_test.model";
    subwords->save(path);
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  expect_equal_ids(*subwords, tokenizer_json("subwords", model), false);
}

TEST(TokenizerJson, HandWrittenBpeMergesInTheOrderOfScores) {
  const std::string model = written(small_exact_model({"a", "b", kMark, "ab", kMark + "ab", kMark + kMark, "aa"}));
  const std::string json = tokenizer_json("subwords", model);
  const auto parsed = nlohmann::json::parse(json);
  EXPECT_EQ(parsed.at("model").at("merges"), (nlohmann::json{"a b", kMark + " ab", kMark + " " + kMark, "a a"}));
  EXPECT_EQ(parsed.at("model").at("vocab").at("</s>"), 0);
  EXPECT_EQ(parsed.at("model").at("vocab").at("<unk>"), 2);
  EXPECT_EQ(JsonReader(json).ids("aab ab"), (Ids{259, 262, 263}));
  expect_equal_ids(Subwords(model), json, false);
}

TEST(TokenizerJson, BpeOfSentencePieceHasTheSameIds) {
  for (const auto& more : std::vector<std::unordered_map<std::string, std::string>>{
           {},
           {{"byte_fallback", "true"}, {"normalization_rule_name", "identity"}, {"remove_extra_whitespaces", "false"}},
           {{"normalization_rule_name", "nfkc"}, {"add_dummy_prefix", "false"}, {"character_coverage", "0.985"}},
           {{"remove_extra_whitespaces", "false"}, {"user_defined_symbols", "@,#"}},
           {{"normalization_rule_name", "identity"}, {"user_defined_symbols", "\n,@"}}}) {
    const std::string model = trained("bpe", more);
    expect_equal_ids(Subwords(model), tokenizer_json("subwords", model), false);
  }
}

TEST(TokenizerJson, UnigramsOfSentencePieceHaveTheSameIds) {
  for (const auto& more : std::vector<std::unordered_map<std::string, std::string>>{
           {},
           {{"byte_fallback", "true"}, {"character_coverage", "0.985"}},
           {{"byte_fallback", "true"},
            {"normalization_rule_name", "identity"},
            {"add_dummy_prefix", "false"},
            {"remove_extra_whitespaces", "false"}},
           {{"user_defined_symbols", "fox,<sep>"}, {"normalization_rule_name", "identity"}},
           {{"user_defined_symbols", "times,<sep>"}}}) {
    const std::string model = trained("unigram", more);
    const std::string json = tokenizer_json("subwords", model);
    EXPECT_EQ(nlohmann::json::parse(json).at("model").at("type"), "Unigram");
    expect_equal_ids(Subwords(model), json, false);
  }
}

TEST(TokenizerJson, TheMapOfCharactersIsCarriedOver) {
  const std::string model = trained("unigram", {});
  const auto steps = nlohmann::json::parse(tokenizer_json("subwords", model)).at("normalizer").at("normalizers");
  EXPECT_EQ(steps.at(0).at("type"), "Precompiled");
  const std::string base64 = steps.at(0).at("precompiled_charsmap");
  EXPECT_EQ(base64.size(), (parse_sentencepiece_model(model)->character_map.size() + 2) / 3 * 4);
  EXPECT_GT(base64.size(), 100000U);
}

TEST(TokenizerJson, PiecesOfADamagedModelAreRefusedByTheirNumber) {
  const auto refusal = [](const std::string& field) {
    return message_of<InputError>([&] { tokenizer_json("subwords", written(small_exact_model({"a"})) + field); });
  };
  const std::string id = std::to_string(parse_sentencepiece_model(written(small_exact_model({"a"})))->pieces.size());
  EXPECT_NE(refusal(piece_field({"\xff", PieceType::normal}, 0.0F))
                .find("piece " + id + " of the SentencePiece model is not UTF-8"),
            std::string::npos);
  EXPECT_NE(refusal(piece_field({"b", PieceType::normal}, std::numeric_limits<float>::quiet_NaN()))
                .find("piece " + id + " of the SentencePiece model has the score nan"),
            std::string::npos);
  EXPECT_NE(refusal(piece_field({std::string(5000, 'a'), PieceType::normal}, 0.0F)).find("has 5000 bytes"),
            std::string::npos);
}

TEST(TokenizerJson, WhatTheFormatCannotSayIsRefused) {
  const auto refusal = [](SentencePieceModel model) {
    return message_of<InputError>([&] { tokenizer_json("subwords", written(model)); });
  };
  const SentencePieceModel good = small_exact_model({"a", "b", "ab"});
  EXPECT_NO_THROW(tokenizer_json("subwords", written(good)));
  SentencePieceModel model = good;
  model.algorithm = 3;
  EXPECT_NE(refusal(model).find("algorithm 3"), std::string::npos) << refusal(model);
  model = good;
  model.marks_spaces = false;
  EXPECT_NE(refusal(model).find("escape_whitespaces"), std::string::npos) << refusal(model);
  model = good;
  model.pieces.push_back({"ba", PieceType::unused});
  EXPECT_NE(refusal(model).find("unused piece 'ba'"), std::string::npos) << refusal(model);
  model = good;
  model.pieces.push_back({"<sep>", PieceType::user_defined});
  EXPECT_NE(refusal(model).find("user-defined piece '<sep>'"), std::string::npos) << refusal(model);
  model = good;
  model.pieces.push_back({"ac", PieceType::normal});
  EXPECT_NE(refusal(model).find("character 'c' of the piece 'ac'"), std::string::npos) << refusal(model);
  const std::string equal = message_of<InputError>([&] {
    tokenizer_json("subwords", written(good) + piece_field({"ba", PieceType::normal}, -261.0F));
  });
  EXPECT_NE(equal.find("the same score"), std::string::npos) << equal;
  const std::string changed = trained("unigram", {{"user_defined_symbols", "\n"}});
  EXPECT_NE(message_of<InputError>([&] { tokenizer_json("subwords", changed); }).find("normalizer nmt_nfkc"),
            std::string::npos);
  EXPECT_NE(message_of<InputError>([] { tokenizer_json("subwords", "no model"); }).find("no SentencePiece model"),
            std::string::npos);
  EXPECT_NE(message_of<InputError>([] { tokenizer_json("words", "<eos>\n<unk>\n\xFF\n"); }).find("word 2"),
            std::string::npos);
  EXPECT_NE(message_of<InputError>([] { tokenizer_json("words", "the\n"); }).find("<eos>"), std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { tokenizer_json("subpixels", ""); }).find("'subpixels'"), std::string::npos);
}

}  // namespace
}  // namespace routing::tokenizer_json_test
