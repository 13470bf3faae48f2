// Any file as a text of bytes.
#pragma once

#include "routing/core/files.h"
#include "routing/data/sources/split.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <variant>
#include <vector>

namespace routing {

// Files that end in .gz or .dz (dictzip), in any case, are decompressed into memory: all members one after the other,
// zeros after the last ignored. Every other file is mapped as it is.
//
// Throws  FileError  as MappedFile, or the file is empty, or the compressed file is damaged, cut off, not gzip at all,
//                    holds no bytes, or does not fit into memory
class ByteCorpus {
 public:
  explicit ByteCorpus(const std::filesystem::path& path);

  // Valid while the corpus lives; never empty.
  std::span<const std::uint8_t> bytes() const;
  std::span<const std::uint8_t> part(const SplitBounds& bounds) const;
  std::int64_t size() const { return static_cast<std::int64_t>(bytes().size()); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::variant<std::vector<std::uint8_t>, MappedFile> storage_;
};

}  // namespace routing
