// Makes a SentencePiece model from a text of any size.
#pragma once

#include "routing/data/tokenizers/subwords.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

struct SubwordTrainerOptions {
  std::int64_t vocabulary_size = 32000;
  // At most so many bytes of the text are kept and learnt from. The default takes about half a minute.
  std::size_t sample_bytes = 20'000'000;
};

// The text comes in pieces. Of its lines (longer ones in parts of 4 KiB) an even sample is kept: all of them as long as
// they fit, then every second one by a hash of its number, then every fourth, and so on; so the sample has between half
// of sample_bytes and all of it, and does not depend on how the text was cut.
//
// The model is byte-pair encoding with id 0 for the end of a document, 1 for unknown pieces (which never occur), 2 for
// the line end, all 256 bytes, and then pieces that do not reach over words or lines. It is exact, and equal texts and
// options give equal bytes. A short text may give fewer pieces than asked for.
class SubwordTrainer {
 public:
  explicit SubwordTrainer(const SubwordTrainerOptions& options = {});
  void add(std::string_view text);
  std::size_t sampled_bytes() const { return bytes_; }
  // Throws  ConfigError  a vocabulary too small for the characters of the text, or a text without any
  std::unique_ptr<Subwords> train() const;

 private:
  struct Line {
    std::uint64_t key = 0;
    std::string text;
  };
  void add_line(std::string_view line);

  SubwordTrainerOptions options_;
  std::vector<Line> lines_;
  std::size_t bytes_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t highest_key_ = ~std::uint64_t{0};  // lines with higher ones are not kept
};

}  // namespace routing
