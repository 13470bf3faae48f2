// Tokenisers from files, and what all kinds of them share.
#pragma once

#include "routing/data/tokenizers/tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace routing {

// The tokeniser of a kind ("bytes", "words" or "subwords") from the file that its save() wrote or that a user brought:
// a vocabulary (see WordVocabulary) or a SentencePiece model (see Subwords). Bytes need no file; the path is not looked
// at.
//
// Throws  ConfigError  another kind
//         FileError    as the kind's load()
std::unique_ptr<Tokenizer> load_tokenizer(std::string_view kind, const std::filesystem::path& path);

// Tokenizer::hash() of a tokeniser with this kind and file: xxHash64 of the kind, a NUL and the bytes of the file.
std::string tokenizer_hash(std::string_view kind, std::string_view file);

// An InputError unless 0 <= id < vocabulary_size.
void require_known_id(std::int32_t id, std::int64_t vocabulary_size);

}  // namespace routing
