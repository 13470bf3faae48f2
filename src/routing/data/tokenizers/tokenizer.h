// From text to token ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string kind() const = 0;              // "bytes", "words" or "subwords"
  virtual std::int64_t vocabulary_size() const = 0;  // ids are 0 … size - 1
  // The id that ends a document (or a line, for words), which is also what a model reads before the first token: 0.
  // Bytes have none: -1.
  virtual std::int64_t end_id() const = 0;
  // Appends the ids of a piece of text. Pieces of a document are cut after line ends, which changes nothing.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  // The text of the ids. For what encode() made of a text it is that text, byte for byte, within the limits that each
  // kind states. Each id has a text of its own, and the text of several is theirs, one after the other; so text can be
  // written while ids come in.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  // What makes it this tokeniser and no other, as 16 hexadecimal digits: equal hashes mean equal ids for every text.
  virtual std::string hash() const = 0;
  // Writes the file from which load_tokenizer() makes it again; nothing for bytes.
  virtual void save(const std::filesystem::path& path) const = 0;
};

}  // namespace routing
