// What `routing generate` goes on from.
#pragma once

#include "generate/generate_options.h"
#include "routing/data/tokenizers/tokenizer.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

struct Prompt {
  bool given = false;
  std::string text = {};               // as it was given; empty for ids
  std::vector<std::int32_t> ids = {};  // of --prompt-ids; of a text they are still to be made
};

// Reads --prompt, --prompt-file, --prompt-ids or standard input, which loses one line end at its end: echo adds it.
// Throws a ConfigError for an empty one, a FileError for a file that cannot be read.
Prompt read_prompt(const GenerateArguments& arguments);

// The ids of its text. `notes` hears of words that are not in the vocabulary. Throws a ConfigError for a text without
// tokens, and what the tokeniser throws.
void encode_prompt(Prompt& prompt, const Tokenizer& tokenizer, const std::function<void(const std::string&)>& notes);

// "3,17,5" or "3 17 5" as ids. Throws a ConfigError that names what is none, and its place.
std::vector<std::int32_t> parse_ids(std::string_view text, const std::string& origin);

// Ids as numbers with spaces between, for models whose tokens have no text: copy and reverse. The end symbol is
// nothing.
class SymbolText : public Tokenizer {
 public:
  explicit SymbolText(std::int64_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}
  std::string kind() const override { return "symbols"; }
  std::int64_t vocabulary_size() const override { return vocabulary_size_; }
  std::int64_t end_id() const override;
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;  // each " 17"
  std::string hash() const override { return {}; }
  void save(const std::filesystem::path&) const override {}

 private:
  std::int64_t vocabulary_size_;
};

}  // namespace routing
