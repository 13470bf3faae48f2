#include "routing/data/tokenizers/byte_tokenizer.h"

#include "routing/data/tokenizers/tokenizers.h"

namespace routing {

void ByteTokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  ids.reserve(ids.size() + text.size());
  for (const char letter : text) ids.push_back(static_cast<unsigned char>(letter));
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const std::int32_t id : ids) {
    require_known_id(id, vocabulary_size());
    text += static_cast<char>(id);
  }
  return text;
}

std::string ByteTokenizer::hash() const {
  return tokenizer_hash(kind(), "");
}

}  // namespace routing
