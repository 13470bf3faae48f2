// Which bytes of a corpus are for training, validation and testing.
#pragma once

#include <cstdint>
#include <string>

namespace routing {

// The bytes begin … end-1.
struct SplitBounds {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const SplitBounds&, const SplitBounds&) = default;
};

struct CorpusSplit {
  SplitBounds train;
  SplitBounds valid;
  SplitBounds test;
  std::int64_t unused = 0;  // bytes at the end of the file that belong to no part
  friend bool operator==(const CorpusSplit&, const CorpusSplit&) = default;
};

// The part called train, valid or test; a ConfigError names the three otherwise.
const SplitBounds& part_named(const CorpusSplit& split, const std::string& name);

// The three parts in the order of the file, from a rule TRAIN/VALID/TEST as config/text/split_text.h reads it. A part
// may be empty.
//
//   shares  valid begins at byte floor(bytes * TRAIN / 100), test at floor(bytes * (TRAIN + VALID) / 100), and test
//           ends with the file, so the parts tile it
//   bytes   together at most those of the file; what is left over at the end is unused
//   rest    what the others leave, of bytes or of shares
//
// The path is for messages only.
//
// Throws  ConfigError  the rule cannot be read, or the file has too few bytes
CorpusSplit split_corpus(const std::string& rule, std::int64_t bytes, const std::string& path);

}  // namespace routing
