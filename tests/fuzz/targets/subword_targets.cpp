// Models of SentencePiece: by our own reader, and texts that go through SentencePiece itself.
#include "data/tokenizers/model_writer.h"
#include "fuzz/targets.h"
#include "routing/core/utf8.h"
#include "routing/data/tokenizers/sentencepiece_model.h"
#include "routing/data/tokenizers/subword_trainer.h"
#include "routing/data/tokenizers/subwords.h"
#include "routing/data/tokenizers/tokenizer_json.h"

#include <nlohmann/json.hpp>

namespace routing::fuzz {
namespace {

void run_model(Bytes bytes) {
  const std::string file(text_of(bytes));
  const std::optional<SentencePieceModel> model = parse_sentencepiece_model(file);
  const bool all = one_in(4, bytes);
  const bool written = all && takes([&] {
                         const auto json = nlohmann::ordered_json::parse(tokenizer_json("subwords", file));
                         hold(json.contains("model"), "a tokenizer.json without a model");
                       });
  hold(model || !written, "a tokenizer.json of what is no model");
  if (!model) return;
  hold(!model->pieces.empty(), "a model without pieces");
  takes([&] {
    const std::int32_t end = end_piece_of(*model);
    hold(end >= 0 && static_cast<std::size_t>(end) < model->pieces.size(), "an end beyond the pieces");
  });
  for (const Piece& piece : model->pieces) byte_of_piece(piece.text);
}

// An exact model gives every text back.
void run_text(Bytes bytes) {
  static const std::unique_ptr<Subwords> subwords = [] {
    SubwordTrainer trainer({.vocabulary_size = 400});
    trainer.add(
        "the cat sat on the mat and the hat of the cat sat there\nthat is the end of that\n h\xc3\xa9 h\xc3\xa9\n");
    return trainer.train();
  }();
  const std::string text(text_of(bytes));
  std::vector<std::int32_t> ids;
  const bool taken = takes([&] { subwords->encode(text, ids); });
  hold(taken == !first_invalid_utf8(text), "UTF-8 was not told from what is none");
  if (!taken) return;
  hold(subwords->decode(ids) == text, "encoded and decoded it is another text");
  for (const std::int32_t id : ids) hold(id != subwords->end_id(), "an end of a document came out of a text");
}

std::vector<std::string> model_seeds() {
  const SentencePieceModel exact = small_exact_model({"\xe2\x96\x81", "a", "b", "ab",
                                                      "\xe2\x96\x81"
                                                      "ab"});
  SentencePieceModel unigram;
  unigram.algorithm = kUnigram;
  unigram.pieces = {{"<unk>", PieceType::unknown}, {"<s>", PieceType::control},
                    {"</s>", PieceType::control},  {"\xe2\x96\x81the", PieceType::normal},
                    {"e", PieceType::normal},      {"x", PieceType::user_defined},
                    {"y", PieceType::unused}};
  SentencePieceModel small = unigram;
  small.algorithm = kBytePairEncoding;
  small.character_map = literal("\4\0\0\0abcd");
  return {written(exact), written(unigram), written(small), written(unigram) + bytes_field(5, number_field(1, 3)),
          bytes_field(1, bytes_field(1, "</s>") + number_field(3, 3))};
}

std::vector<std::string> text_seeds() {
  return {"the cat sat\n",    " \xe2\x96\x81\xe2\x96\x81 the\n\n  of",
          "</s><unk> <0x41>", "h\xc3\xa9 \xf0\x9f\x98\x80 \xef\xbf\xbd\r\n\t",
          literal("a\0b"),    "x\xed\xa0\x80"};
}

}  // namespace

FuzzTarget sentencepiece_model_target() {
  return {"sentencepiece_model", run_model, model_seeds, 1024};
}
FuzzTarget subwords_target() {
  return {"subwords", run_text, text_seeds};
}

}  // namespace routing::fuzz
