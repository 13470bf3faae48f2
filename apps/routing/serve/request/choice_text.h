// One choice of a completion while its tokens come: the text that is certain, and the tokens that it is made of.
//
// A token is given out with the first byte of its text. What is held back (half a character, the beginning of a stop
// text) holds its tokens back too, and those whose text begins behind a stop are never given out.
#pragma once

#include "routing/data/tokenizers/tokenizer.h"
#include "routing/generation/sampler.h"
#include "routing/generation/text_stream.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// The text of one token; where that is not UTF-8, "bytes:\xe2\x80".
std::string token_name(const Tokenizer& tokenizer, std::int32_t token);
// Code points, as text_offset counts them; a byte that is not UTF-8 counts like the U+FFFD it becomes.
std::size_t count_characters(std::string_view text);

// The lists of OpenAI's logprobs.
class TokenRecords {
 public:
  struct Record {
    TokenDraw draw = {};
    std::vector<TokenDraw> likeliest = {};
    std::size_t begin = 0;  // bytes of the text before it
  };
  // `characters` stand before the first token.
  TokenRecords(const Tokenizer& tokenizer, std::size_t characters) : tokenizer_(&tokenizer), characters_(characters) {}
  void add(const Record& record);
  nlohmann::ordered_json take();

 private:
  const Tokenizer* tokenizer_;
  std::size_t characters_;
  nlohmann::ordered_json lists_ = {};
};

class ChoiceText {
 public:
  struct Options {
    std::vector<std::string> stops = {};
    std::optional<std::int64_t> logprobs = std::nullopt;  // how many of the likeliest; nothing: no records
    std::size_t characters = 0;                           // that stand before the text
  };
  ChoiceText(const Tokenizer& tokenizer, const Options& options);

  // False once a stop text has come.
  bool add(const TokenDraw& draw, std::span<const float> logits);
  // No more tokens come.
  void finish();
  bool stopped() const { return stream_.stopped(); }
  std::int64_t tokens() const { return tokens_; }

  // What has become certain since the last call.
  struct Piece {
    std::string text = {};
    nlohmann::ordered_json logprobs = nullptr;
  };
  Piece take();
  bool has_piece() const { return !text_.empty(); }

 private:
  void release(std::string text);

  const Tokenizer* tokenizer_;
  Options options_;
  TextStream stream_;
  TokenRecords records_;
  std::deque<TokenRecords::Record> held_;
  std::size_t decoded_ = 0;  // bytes of all tokens
  std::size_t certain_ = 0;  // bytes that were released
  std::string text_;         // released and not taken
  std::int64_t tokens_ = 0;
};

}  // namespace routing
