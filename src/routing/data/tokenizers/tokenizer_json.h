// A tokeniser as other programs read it: a tokenizer.json of Hugging Face's library `tokenizers`.
//
//   bytes      BPE over the 256 letters that ByteLevel writes bytes with, without merges: the id is the byte
//   words      WordLevel. The token of id 0 is the line end itself, so that the word "<eos>" of a text is an unknown
//   word subwords   Unigram with the model's scores, or BPE with its merges; lines apart, as Subwords encodes them
//
// The ids are those of Tokenizer::encode() for every UTF-8 text, but for U+2581 in subwords: that format cannot tell it
// from a space. There are no added tokens, so no letters of a text become the end of a document.
#pragma once

#include <string>
#include <string_view>

namespace routing {

// Of a tokeniser of this kind ("bytes", "words" or "subwords"), from the bytes of its file (see load_tokenizer); bytes
// have none.
//
// Throws  ConfigError  another kind
//         InputError   the file is no vocabulary or model, or has what the format cannot say: words that are not UTF-8;
//                      of SentencePiece, algorithms other than unigram and BPE, spaces that are not marked or follow
//                      the text, user-defined pieces that the normaliser might change; in BPE unused pieces, equal
//                      scores, and user-defined pieces of several characters
std::string tokenizer_json(std::string_view kind, std::string_view file);

}  // namespace routing
