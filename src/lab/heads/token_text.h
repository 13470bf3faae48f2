// Tokens as people read them.
#pragma once

#include "routing/data/tokenizers/tokenizer.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

struct TokenText {
  std::string shown = {};  // its part of the running text, without control characters but line ends and tabs; empty if
                           // its bytes end a character that an earlier token began
  std::string label = {};  // alone, on one line: "the", "\n", "é", and for the second token of that character "é+1"
  std::string bytes = {};  // the token's own
};

// A token each. A character whose bytes are several tokens belongs to the first of them, whole; bytes that are not
// UTF-8 are written "\xe9".
std::vector<TokenText> token_texts(const Tokenizer& tokenizer, std::span<const std::int32_t> ids);

// The label as a figure can show it: with "␣" for a lone space, and where no installed font has its letters
// (figure_font.h) the token's own bytes, "\xe4\xb8\xad".
std::string drawable_label(const TokenText& token);

// Where a text begins in the tokens: the token that holds its first byte; -1 if it is not there.
std::int64_t find_in_tokens(const Tokenizer& tokenizer, std::span<const std::int32_t> ids, std::string_view text);

// "row 3 column 0 red": value `token` of an image of this width (generation/image_tokens.h).
std::string image_token_label(std::int64_t token, std::int64_t image_width);

}  // namespace routing
