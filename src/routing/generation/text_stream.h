// Token ids into text while they come, for a terminal or a pipe.
//
// What is given out is certain: all of it together is the tokeniser's decode() of all ids, cut off before the first
// place at which one of the stop texts begins. Held back until they are decided are
//
//   the beginning of a stop text   which may go on in the next token; the stop may span tokens and cut them anywhere
//   the bytes of half a character  so that every piece of UTF-8 text is UTF-8 itself
//
// Bytes that are not UTF-8 pass through as they are; at the end, so does half a character.
#pragma once

#include "routing/data/tokenizers/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// Memory and work for a token do not grow with the text before it.
class TextStream {
 public:
  // The tokeniser must outlive the stream. Throws a ConfigError for an empty stop text, which would stand everywhere.
  explicit TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops = {});

  // The text that has become certain. Once the stream has stopped or is finished there is none, whatever comes.
  // Throws an InputError for an id that the tokeniser does not know.
  std::string add(std::int64_t id);
  // Has a stop text come? It has as soon as no other one can begin before it: with the stops "abc" and "b", "ab" is
  // decided by the next byte, or by finish().
  bool stopped() const { return stopped_; }
  // No more ids come: the text that was held back, unless it is a stop text.
  std::string finish();

 private:
  std::string take_certain(bool at_end);
  std::size_t first_undecided(bool at_end);

  const Tokenizer* tokenizer_;
  std::vector<std::string> stops_;
  std::string held_;  // what was not given out yet
  bool stopped_ = false;
  bool finished_ = false;
};

}  // namespace routing
