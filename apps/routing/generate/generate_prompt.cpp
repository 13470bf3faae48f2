#include "generate/generate_prompt.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/tasks/sequence_tasks.h"
#include "routing/data/tokenizers/word_vocabulary.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>
#include <system_error>

namespace routing {
namespace {

constexpr std::size_t kNamedWords = 5;
constexpr std::string_view kSpace = " \t\n\v\f\r";

std::string standard_input() {
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void require_something(bool something, const std::string& origin) {
  require<ConfigError>(something, origin, ": the prompt is empty; leave it out to begin from nothing");
}

// "quux, frob": the words of the text that the vocabulary has not, each once.
std::string unknown_words(std::string_view text, const WordVocabulary& words) {
  std::vector<std::string_view> unknown;
  for (std::size_t begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const bool is_known = words.id_of(word) != words.unknown_id() || word == WordVocabulary::kUnknown;
    if (!is_known && std::find(unknown.begin(), unknown.end(), word) == unknown.end()) unknown.push_back(word);
    begin = text.find_first_not_of(kSpace, end);
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(kNamedWords, unknown.size()); ++i) {
    list += (i == 0 ? "" : ", ") + std::string(unknown[i]);
  }
  return list + (unknown.size() > kNamedWords ? ", …" : "");
}

}  // namespace

std::vector<std::int32_t> parse_ids(std::string_view text, const std::string& origin) {
  std::vector<std::int32_t> ids;
  const std::string separators = "," + std::string(kSpace);
  for (std::size_t begin = text.find_first_not_of(separators); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    std::int32_t id = 0;
    const auto [stop, failure] = std::from_chars(text.data() + begin, text.data() + end, id);
    require<ConfigError>(failure == std::errc() && stop == text.data() + end, origin, ": '",
                         text.substr(begin, end - begin), "' at place ", ids.size(),
                         " is not a token id; give whole numbers with commas or spaces between");
    ids.push_back(id);
    begin = text.find_first_not_of(separators, end);
  }
  return ids;
}

Prompt read_prompt(const GenerateArguments& arguments) {
  if (arguments.has("--prompt-ids")) {
    Prompt prompt{.given = true, .ids = parse_ids(arguments.prompt_ids, "--prompt-ids")};
    require_something(!prompt.ids.empty(), "--prompt-ids");
    return prompt;
  }
  Prompt prompt{.given = true};
  std::string origin = "--prompt";
  if (arguments.has("--prompt")) {
    prompt.text = arguments.prompt;
  } else if (arguments.has("--prompt-file")) {
    origin = arguments.prompt_file;
    prompt.text = read_file(origin);
  } else if (arguments.has("-")) {
    origin = "standard input";
    prompt.text = standard_input();
  } else {
    return {};
  }
  require_something(!prompt.text.empty(), origin);
  return prompt;
}

void encode_prompt(Prompt& prompt, const Tokenizer& tokenizer, const std::function<void(const std::string&)>& notes) {
  if (prompt.text.empty()) return;
  tokenizer.encode(prompt.text, prompt.ids);
  require_something(!prompt.ids.empty(), "no token in the text");
  const auto* words = dynamic_cast<const WordVocabulary*>(&tokenizer);
  if (words == nullptr) return;
  const std::string unknown = unknown_words(prompt.text, *words);
  if (!unknown.empty()) notes("note: not in the vocabulary, read as <unk>: " + unknown);
}

std::int64_t SymbolText::end_id() const {
  return kEndSymbol;
}

void SymbolText::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  const std::vector<std::int32_t> parsed = parse_ids(text, "prompt");
  ids.insert(ids.end(), parsed.begin(), parsed.end());
}

std::string SymbolText::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id != kEndSymbol) text += " " + std::to_string(id);
  }
  return text;
}

}  // namespace routing
