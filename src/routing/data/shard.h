// Tokenised data on disk: a header of 128 bytes, then the ids, mapped into memory when read.
//
//   0    "RTSHARD1"
//   8    u32  bytes of an id: 1 or 4              12   u32  0
//   16   u64  ids                                 24   u64  ids of a record; 0 for running text
//   32   u64  documents: books, lines, images     40   u64  words of the text
//   48   u64  bytes of the text                   56   u64  size of the vocabulary
//   64   16 hexadecimal digits: hash of the tokeniser
//   80   u64  xxHash64 of the ids                 88   zeros
//   120  u64  xxHash64 of the 120 bytes before
//
// Numbers are little-endian. Ids are bytes if the vocabulary has at most 256, 32-bit numbers otherwise.
#pragma once

#include "routing/core/files.h"
#include "routing/core/hash.h"
#include "routing/data/token_view.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace routing {

struct ShardFacts {
  std::int64_t tokens = 0;
  std::int64_t record_length = 0;  // 0 for running text
  std::int64_t documents = 0;
  std::int64_t words = 0;  // between white space; 0 for images
  std::int64_t bytes = 0;  // of the text before it was tokenised; 0 for images
  std::int64_t vocabulary_size = 0;
  std::string tokenizer_hash = std::string(16, '0');
  friend bool operator==(const ShardFacts&, const ShardFacts&) = default;
};

// Writes ids as they come; the file takes its place with finish(). `facts` may leave the counts open until then.
class ShardWriter {
 public:
  ShardWriter(const std::filesystem::path& path, std::int64_t vocabulary_size, std::string tokenizer_hash);

  // Throws an InputError for an id that the vocabulary does not have.
  void write(std::span<const std::int32_t> ids);
  void write(std::span<const std::uint8_t> ids);
  // Counts of the text; tokens, vocabulary_size and tokenizer_hash are the writer's own.
  ShardFacts finish(ShardFacts counts);

  std::int64_t tokens() const { return facts_.tokens; }

 private:
  AtomicFile file_;
  ShardFacts facts_;
  std::uint32_t id_bytes_;
  XxHash64 checksum_;
};

// A shard for reading. Checks the header whole, the size of the file, and the checksum of the ids if they are not more
// than a gibibyte; verify() checks it for any size. A FileError begins with the path and says what was expected and
// found.
class Shard {
 public:
  explicit Shard(const std::filesystem::path& path);

  const ShardFacts& facts() const { return facts_; }
  TokenView tokens() const { return tokens_; }
  // The checksum of the ids, as 16 hexadecimal digits.
  std::string checksum() const;
  void verify() const;

 private:
  std::filesystem::path path_;
  MappedFile file_;
  ShardFacts facts_;
  std::uint64_t checksum_ = 0;
  TokenView tokens_;
};

}  // namespace routing
