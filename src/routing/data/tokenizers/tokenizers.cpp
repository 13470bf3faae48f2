#include "routing/data/tokenizers/tokenizers.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/core/nearest_name.h"
#include "routing/data/tokenizers/byte_tokenizer.h"
#include "routing/data/tokenizers/subwords.h"
#include "routing/data/tokenizers/word_vocabulary.h"

namespace routing {

std::unique_ptr<Tokenizer> load_tokenizer(std::string_view kind, const std::filesystem::path& path) {
  if (kind == "bytes") return std::make_unique<ByteTokenizer>();
  if (kind == "words") return WordVocabulary::load(path);
  if (kind == "subwords") return Subwords::load(path);
  const std::string guess = did_you_mean(kind, {"bytes", "words", "subwords"});
  throw ConfigError("there are no tokens of the kind '" + std::string(kind) + "', only bytes, words and subwords" +
                    (guess.empty() ? "" : "; " + guess));
}

std::string tokenizer_hash(std::string_view kind, std::string_view file) {
  XxHash64 hash;
  hash.update(std::as_bytes(std::span(kind.data(), kind.size())));
  hash.update(std::as_bytes(std::span("")));  // its NUL
  hash.update(std::as_bytes(std::span(file.data(), file.size())));
  return hexadecimal(hash.digest());
}

void require_known_id(std::int32_t id, std::int64_t vocabulary_size) {
  require<InputError>(0 <= id && id < vocabulary_size, "there is no token ", id, "; ids are 0 … ", vocabulary_size - 1);
}

}  // namespace routing
