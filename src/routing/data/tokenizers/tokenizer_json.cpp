#include "routing/data/tokenizers/tokenizer_json.h"

#include "routing/core/error.h"
#include "routing/core/utf8.h"
#include "routing/data/tokenizers/subwords_json.h"
#include "routing/data/tokenizers/word_vocabulary.h"

#include <cstdint>
#include <vector>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

Json split(const Json& pattern, const char* behaviour) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behaviour}, {"invert", false}};
}

Json sequence(const char* members, const std::vector<Json>& of) {
  return {{"type", "Sequence"}, {members, of}};
}

std::string utf8(std::uint32_t character) {
  if (character < 0x80U) return {static_cast<char>(character)};
  return {static_cast<char>(0xC0U | character >> 6U), static_cast<char>(0x80U | (character & 0x3FU))};
}

// The letter of each byte in ByteLevel: itself where that can be seen, and the others in their order from U+0100 on.
std::vector<std::string> letters_of_bytes() {
  std::vector<std::string> letters;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool seen = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    letters.push_back(utf8(seen ? byte : next++));
  }
  return letters;
}

struct Parts {
  Json normalizer = nullptr;
  Json pre_tokenizer = nullptr;
  Json decoder = nullptr;
  Json model = nullptr;
};

Parts bytes_parts() {
  const Json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  Json vocabulary = Json::object();
  int id = 0;
  for (const std::string& letter : letters_of_bytes()) vocabulary[letter] = id++;
  return {.pre_tokenizer = sequence("pretokenizers", {split({{"String", "\n"}}, "MergedWithPrevious"), byte_level}),
          .decoder = byte_level,
          .model = {{"type", "BPE"},
                    {"dropout", nullptr},
                    {"unk_token", nullptr},
                    {"continuing_subword_prefix", nullptr},
                    {"end_of_word_suffix", nullptr},
                    {"fuse_unk", false},
                    {"byte_fallback", false},
                    {"vocab", vocabulary},
                    {"merges", Json::array()}}};
}

std::vector<std::string> lines_of(std::string_view file) {
  std::vector<std::string> lines;
  while (!file.empty()) {
    const std::size_t end = file.find('\n');
    lines.emplace_back(file.substr(0, end));
    file.remove_prefix(end == std::string_view::npos ? file.size() : end + 1);
  }
  return lines;
}

Parts words_parts(std::string_view file) {
  const WordVocabulary words(lines_of(file));
  Json vocabulary = Json::object();
  std::int64_t id = 0;
  for (const std::string& word : words.words()) {
    require<InputError>(!first_invalid_utf8(word), "word ", id,
                        " of the vocabulary is not UTF-8, which a tokenizer.json ",
                        "has to be; use data.tokens=bytes for such texts");
    vocabulary[id == 0 ? "\n" : word] = id;
    ++id;
  }
  // The white space of ASCII alone; a line end is a token, each of several its own.
  return {.pre_tokenizer = sequence("pretokenizers", {split({{"Regex", R"([ \t\r\x0B\x0C]+)"}}, "Removed"),
                                                      split({{"String", "\n"}}, "Isolated")}),
          .model = {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", WordVocabulary::kUnknown}}};
}

Parts subwords_parts(std::string_view file) {
  const auto model = parse_sentencepiece_model(file);
  require<InputError>(model.has_value(), "these ", file.size(),
                      " bytes are no SentencePiece model; name a .model file that SentencePiece wrote");
  SubwordsJson made = subwords_json(*model);
  return {std::move(made.normalizer), std::move(made.pre_tokenizer), std::move(made.decoder), std::move(made.model)};
}

Parts parts_of(std::string_view kind, std::string_view file) {
  if (kind == "bytes") return bytes_parts();
  if (kind == "words") return words_parts(file);
  require<ConfigError>(kind == "subwords", "a tokeniser of the kind '", kind,
                       "' has no tokenizer.json; bytes, words and subwords have one");
  return subwords_parts(file);
}

}  // namespace

std::string tokenizer_json(std::string_view kind, std::string_view file) {
  const Parts parts = parts_of(kind, file);
  const Json all{{"version", "1.0"},
                 {"truncation", nullptr},
                 {"padding", nullptr},
                 {"added_tokens", Json::array()},
                 {"normalizer", parts.normalizer},
                 {"pre_tokenizer", parts.pre_tokenizer},
                 {"post_processor", nullptr},
                 {"decoder", parts.decoder},
                 {"model", parts.model}};
  return all.dump(1) + "\n";
}

}  // namespace routing
