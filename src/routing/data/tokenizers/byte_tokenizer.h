// Bytes as tokens: id = value.
#pragma once

#include "routing/data/tokenizers/tokenizer.h"

namespace routing {

// Exact for every text, UTF-8 or not. An id that is not a byte is an InputError.
class ByteTokenizer : public Tokenizer {
 public:
  std::string kind() const override { return "bytes"; }
  std::int64_t vocabulary_size() const override { return 256; }
  std::int64_t end_id() const override { return -1; }
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::string hash() const override;
  void save(const std::filesystem::path&) const override {}
};

}  // namespace routing
