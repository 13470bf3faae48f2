#include "serve/request/choice_text.h"

#include "routing/core/utf8.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

}  // namespace

std::string token_name(const Tokenizer& tokenizer, std::int32_t token) {
  std::string text = tokenizer.decode(std::array{token});
  if (!first_invalid_utf8(text)) return text;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "bytes:";
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    name += {'\\', 'x', kDigits[value / 16], kDigits[value % 16]};
  }
  return name;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), std::not_fn(continues_character)));
}

void TokenRecords::add(const Record& record) {
  if (lists_.is_null()) {
    for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset", "token_ids", "top_ids"}) {
      lists_[list] = Json::array();
    }
  }
  const std::string name = token_name(*tokenizer_, record.draw.token);
  lists_["tokens"].push_back(name);
  lists_["token_logprobs"].push_back(record.draw.log_probability);
  Json likeliest = Json::object();
  Json ids = Json::array();
  for (const TokenDraw& one : record.likeliest) {
    const std::string other = token_name(*tokenizer_, one.token);
    if (!likeliest.contains(other)) likeliest[other] = one.log_probability;
    ids.push_back(one.token);
  }
  // As OpenAI has it, the token that was taken is always among them.
  if (!likeliest.contains(name)) likeliest[name] = record.draw.log_probability;
  lists_["top_logprobs"].push_back(std::move(likeliest));
  const std::string text = tokenizer_->decode(std::array{record.draw.token});
  // The second half of a character stands where the character does.
  const bool is_half = characters_ > 0 && !text.empty() && continues_character(text.front());
  lists_["text_offset"].push_back(is_half ? characters_ - 1 : characters_);
  characters_ += count_characters(text);
  lists_["token_ids"].push_back(record.draw.token);
  lists_["top_ids"].push_back(std::move(ids));
}

Json TokenRecords::take() {
  return std::exchange(lists_, Json());
}

ChoiceText::ChoiceText(const Tokenizer& tokenizer, const Options& options)
    : tokenizer_(&tokenizer),
      options_(options),
      stream_(tokenizer, options.stops),
      records_(tokenizer, options.characters) {}

bool ChoiceText::add(const TokenDraw& draw, std::span<const float> logits) {
  ++tokens_;
  if (options_.logprobs) {
    held_.push_back(
        {.draw = draw,
         .likeliest = *options_.logprobs > 0 ? most_likely(logits, *options_.logprobs) : std::vector<TokenDraw>(),
         .begin = decoded_});
    decoded_ += tokenizer_->decode(std::array{draw.token}).size();
  }
  release(stream_.add(draw.token));
  return !stream_.stopped();
}

void ChoiceText::finish() {
  release(stream_.finish());
  // A token without text, such as the end of a document, stands behind all of it.
  while (!stream_.stopped() && !held_.empty()) {
    records_.add(held_.front());
    held_.pop_front();
  }
}

void ChoiceText::release(std::string text) {
  certain_ += text.size();
  while (!held_.empty() && held_.front().begin < certain_) {
    records_.add(held_.front());
    held_.pop_front();
  }
  // A model that reads numbers writes numbers, each behind a space: the first one's is not wanted.
  if (tokenizer_->kind() == "symbols" && certain_ == text.size() && text.starts_with(' ')) text.erase(0, 1);
  text_ += text;
}

ChoiceText::Piece ChoiceText::take() {
  return {.text = std::exchange(text_, {}), .logprobs = records_.take()};
}

}  // namespace routing
