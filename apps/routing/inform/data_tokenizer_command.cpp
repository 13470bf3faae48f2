#include "commands.h"
#include "inputs/run_files.h"
#include "lab/runs/model_export.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/prepared.h"
#include "routing/data/tokenizers/sentencepiece_model.h"
#include "routing/data/tokenizers/tokenizer_json.h"
#include "shell/options.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>

namespace routing {
namespace {

namespace fs = std::filesystem;

struct TokenizerOptions {
  std::string where;
  std::string checkpoint = "best";
  std::string out;
};

// A tokeniser and the file it is made from; bytes have none.
struct FoundTokenizer {
  TokenKind kind = TokenKind::bytes;
  fs::path file = {};
};

FoundTokenizer of_prepared(const fs::path& folder) {
  const TokenKind kind = read_data_facts(folder).tokens;
  return {kind, tokenizer_file(folder, kind)};
}

FoundTokenizer of_model(const fs::path& model) {
  ExportSource source{.model = read_model_header(model)};
  for (const TokenKind kind : {TokenKind::words, TokenKind::subwords}) {
    if (source.tokenizer.empty()) source.tokenizer = kept_tokenizer(model, kind);
  }
  return {exported_tokens(source), source.tokenizer};
}

FoundTokenizer found_at(const TokenizerOptions& options) {
  const fs::path path = options.where;
  if (is_prepared(path)) return of_prepared(path);
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || path.extension() == ".safetensors") {
    return of_model(model_file(path, options.checkpoint));
  }
  return {parse_sentencepiece_model(read_file(path)) ? TokenKind::subwords : TokenKind::words, path};
}

int run_tokenizer(const TokenizerOptions& options) {
  const FoundTokenizer found = found_at(options);
  const std::string kind(to_string(found.kind));
  require<ConfigError>(
      found.kind == TokenKind::bytes || found.kind == TokenKind::words || found.kind == TokenKind::subwords,
      options.where, ": its tokens are ", found.kind == TokenKind::automatic ? "made-up symbols" : kind,
      ", which no text becomes; a tokenizer.json is for bytes, words and subwords");
  require<FileError>(found.kind == TokenKind::bytes || !found.file.empty(), options.where, ": its ", kind,
                     " have lost their vocabulary; name its file instead");
  std::string json;
  try {
    json = tokenizer_json(kind, found.file.empty() ? "" : read_file(found.file));
  } catch (const InputError& error) {
    throw FileError(found.file.string() + ": " + error.what());
  }
  if (options.out.empty()) {
    std::cout << json;
  } else {
    write_file_at_once(options.out, json);
    std::cout << options.out << "   " << kind << ", " << json.size() << " bytes\n";
  }
  return kDone;
}

}  // namespace

Command add_data_tokenizer(CLI::App& data_app, const ProgramOptions& /*program*/) {
  const auto options = std::make_shared<TokenizerOptions>();
  CLI::App* app = add_command(data_app, "tokenizer",
                              "The tokens of a model or of data for other programs: a tokenizer.json\n\n"
                              "Hugging Face's library tokenizers reads it and gives the same ids. "
                              "docs/data.md says what is written.",
                              "routing data tokenizer runs/first --out tokenizer.json");
  OptionGroup tokens(*app, "Tokens");
  tokens.add({"RUN", "a run, an export, prepared data, a vocabulary.txt or a SentencePiece model"}, options->where)
      ->required();
  tokens.add(kCheckpointOption, options->checkpoint);
  OptionGroup(*app, "Output").add({"--out FILE", "file to write; default: standard output"}, options->out);
  return {app, [options] { return run_tokenizer(*options); }};
}

}  // namespace routing
