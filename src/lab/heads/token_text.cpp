#include "lab/heads/token_text.h"

#include "lab/figures/figure_font.h"
#include "routing/core/utf8.h"

#include <algorithm>
#include <array>

namespace routing {
namespace {

constexpr std::size_t kLongestCharacter = 4;

// Bytes of the character that begins here; 0 if none does.
std::size_t character_length(std::string_view text, std::size_t begin) {
  for (std::size_t length = 1; length <= kLongestCharacter && begin + length <= text.size(); ++length) {
    if (!first_invalid_utf8(text.substr(begin, length))) return length;
  }
  return 0;
}

std::string byte_name(char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto value = static_cast<unsigned char>(byte);
  return std::string("\\x") + kDigits[value / 16] + kDigits[value % 16];
}

// On one line and visible.
std::string escaped(std::string_view character) {
  if (character == "\n") return "\\n";
  if (character == "\t") return "\\t";
  if (character == "\r") return "\\r";
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1 && (first < 0x20 || first == 0x7f)) return byte_name(character.front());
  return std::string(character);
}

struct Pieces {
  std::string text;
  std::vector<std::size_t> owner;  // the token of each byte
};

Pieces pieces_of(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  Pieces pieces;
  for (std::size_t token = 0; token < ids.size(); ++token) {
    pieces.text += tokenizer.decode(ids.subspan(token, 1));
    pieces.owner.resize(pieces.text.size(), token);
  }
  return pieces;
}

}  // namespace

std::vector<TokenText> token_texts(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  const Pieces pieces = pieces_of(tokenizer, ids);
  const std::string_view text = pieces.text;
  std::vector<TokenText> texts(ids.size());
  for (std::size_t place = 0; place < text.size();) {
    const std::size_t first = pieces.owner[place];
    const std::size_t length = character_length(text, place);
    const std::string_view character = text.substr(place, std::max<std::size_t>(1, length));
    const std::string label = length == 0 ? byte_name(text[place]) : escaped(character);
    const bool stays = length > 0 && (character == "\n" || character == "\t");
    texts[first].shown += stays ? std::string(character) : label;
    texts[first].label += label;
    std::size_t last = first;
    for (std::size_t i = 1; i < length; ++i) {
      if (pieces.owner[place + i] == last) continue;
      last = pieces.owner[place + i];
      texts[last].label += label + "+" + std::to_string(last - first);
    }
    place += character.size();
  }
  for (std::size_t place = 0; place < text.size(); ++place) texts[pieces.owner[place]].bytes += text[place];
  return texts;
}

std::string drawable_label(const TokenText& token) {
  if (token.label == " ") return "\u2423";
  if (has_all_letters(token.label)) return token.label;
  std::string bytes;
  for (const char byte : token.bytes) bytes += byte_name(byte);
  return bytes;
}

std::int64_t find_in_tokens(const Tokenizer& tokenizer, std::span<const std::int32_t> ids, std::string_view text) {
  const Pieces pieces = pieces_of(tokenizer, ids);
  const std::size_t place = pieces.text.find(text);
  if (place == std::string::npos || text.empty()) return -1;
  return static_cast<std::int64_t>(pieces.owner[place]);
}

std::string image_token_label(std::int64_t token, std::int64_t image_width) {
  constexpr std::array kChannels{"red", "green", "blue"};
  return "row " + std::to_string(token / (3 * image_width)) + " column " + std::to_string(token / 3 % image_width) +
         " " + kChannels.at(static_cast<std::size_t>(token % 3));
}

}  // namespace routing
