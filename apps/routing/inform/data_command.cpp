#include "commands.h"
#include "inputs/piped_data.h"
#include "routing/core/error.h"
#include "routing/data/dataset.h"
#include "shell/command_line.h"
#include "shell/key_values.h"
#include "shell/options.h"
#include "shell/output.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

struct DataOptions {
  DataConfig config;
  std::string format = "auto";
  std::string tokens = "auto";
  std::string out;
  bool json = false;
};

DataConfig config_of(const DataOptions& options) {
  DataConfig config = options.config;
  config.format = parse_word<DataFormat>(options.format, "data.format");
  config.tokens = parse_word<TokenKind>(options.tokens, "data.tokens");
  for (std::string* path : {&config.path, &config.vocabulary, &config.cache}) *path = tidy_paths(*path);
  return config;
}

PrepareOptions notes_on_stderr(const ProgramOptions& program, bool train_needed) {
  if (program.quiet) return {.train_needed = train_needed};
  return {.train_needed = train_needed,
          .notes = [](const std::string& line) { std::cerr << "routing: " << line << "\n"; }};
}

// "  train     2,088,628"
std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (auto place = static_cast<std::int64_t>(digits.size()) - 3; place > 0; place -= 3) {
    digits.insert(static_cast<std::size_t>(place), ",");
  }
  return digits;
}

const char* what_documents_are(const std::string& format) {
  if (format == "pg19") return "books";
  if (format == "text") return "files";
  return format == "cifar10" || format == "imagenet64" || format == "images" ? "images" : nullptr;
}

int show(const Dataset& data, const DataOptions& options) {
  const DataFacts& facts = data.facts();
  const std::string kind(to_string(facts.tokens));
  Report report;
  report.fact("data", data.path().string()).line("data", data.path().string());
  report.fact("format", facts.format);
  report.line("format", facts.format + (facts.is_image() ? ", images of " + std::to_string(facts.image.height) + " x " +
                                                               std::to_string(facts.image.width)
                                                         : ""));
  report.fact("tokens", kind).fact("vocabulary_size", facts.vocabulary_size);
  const char* const ends = facts.tokens == TokenKind::words      ? ", one <eos> per line counted"
                           : facts.tokens == TokenKind::subwords ? ", one end per document counted"
                                                                 : "";
  report.line("tokens", kind + ", " + grouped(facts.vocabulary_size) + " different" + ends);
  report.fact("tokenizer_hash", facts.tokenizer_hash);
  if (facts.is_image()) report.fact("image", {{"height", facts.image.height}, {"width", facts.image.width}});
  auto parts = nlohmann::ordered_json::object();
  for (const auto& [name, part] : data.parts()) {
    parts[name] = {{"tokens", part.tokens.size()}, {"documents", part.documents}};
    if (!facts.is_image()) parts[name]["bytes"] = part.bytes;
    if (part.words > 0) parts[name]["words"] = part.words;
    std::string line = grouped(part.tokens.size()) + " " + kind;
    if (const char* const documents = what_documents_are(facts.format); documents != nullptr) {
      line += ", " + grouped(part.documents) + " " + documents;
    }
    if (facts.tokens == TokenKind::subwords && part.words > 0) line += ", " + grouped(part.words) + " words";
    if (facts.tokens != TokenKind::bytes && part.bytes > 0) line += ", " + grouped(part.bytes) + " bytes";
    report.line(name, line);
  }
  const bool whole = facts.missing.empty();
  report.fact("parts", parts).fact("whole", whole);
  if (!whole) report.fact("missing", facts.missing);
  if (!facts.cut.empty()) report.fact("cut", facts.cut).line("cut", facts.cut);
  report.line("whole", whole ? "yes" : "no, figures are labelled partial data: " + facts.missing);
  report.print(options.json, 8);
  return kDone;
}

int run_info(const DataOptions& options, const ProgramOptions& program) {
  DataConfig config = config_of(options);
  const PassingData passing(config.path);
  config.path = passing.paths();
  config.cache = passing.cache(config.cache);
  // Without a vocabulary one has to be made, from whatever there is.
  const Dataset data(config, notes_on_stderr(program, options.config.vocabulary.empty()));
  data.verify();
  return show(data, options);
}

int run_prepare(const DataOptions& options, const ProgramOptions& program) {
  DataConfig config = config_of(options);
  if (options.out.empty()) throw UsageError("--out is required", "name a folder, such as --out data/prepared");
  require<ConfigError>(!is_prepared(config.path), config.path, ": is prepared already; train on it with --data");
  const PassingData passing(config.path);
  config.path = passing.paths();
  prepare_data(config, options.out, notes_on_stderr(program, true));
  config.path = options.out;
  return show(Dataset(config), options);
}

void add_shared(CLI::App& app, DataOptions& options) {
  DataConfig& config = options.config;
  const DataConfig defaults;
  config.path.clear();
  OptionGroup data(app, "Data");
  data.add_paths(
          {"PATH", "a file, a folder of texts or a data set, 'code/**/*.c', or - for a pipe; texts may be several"},
          config.path)
      ->required();
  data.add({"--format F", "bytes, enwik8, wikitext, pg19, text, cifar10, imagenet64, images, or auto to look"},
           options.format, offers([] { return key_values("data.format"); }));
  data.add({"--tokens KIND", "bytes, words, subwords or subpixels; auto is what the format usually has"},
           options.tokens, offers([] { return key_values("data.tokens"); }));
  data.add({"--split A/B/C", "train/valid/test of data in one piece"}, config.split);
  data.add({"--vocabulary FILE", "file of words or SentencePiece model; default: made from train"}, config.vocabulary);
  data.add({"--vocabulary-size N", "pieces of a SentencePiece model that is made"}, config.vocabulary_size,
           whole_number(2));
  data.add({"--image-size N", "shrink images to this height and width by averaging"}, config.image_size,
           whole_number(1));
  data.flag({"--require-whole", "refuse a part of a data set"}, config.require_whole);
  OptionGroup(app, "Output").flag(kJsonFlag, options.json);
}

}  // namespace

Command add_data_info(CLI::App& data_app, const ProgramOptions& program) {
  const auto options = std::make_shared<DataOptions>();
  CLI::App* app = add_command(data_app, "info",
                              "What is there: format, parts, tokens, words, and whether it is whole\n\n"
                              "Text and images are tokenised on the first visit and kept in "
                              "$XDG_CACHE_HOME/routing, where training finds them;\n"
                              "the checksums of what is kept are verified.",
                              "routing data info wikitext-103");
  add_shared(*app, *options);
  OptionGroup data(*app, "Data");
  data.add({"--cache DIR", "folder for tokenised data"}, options->config.cache);
  return {app, [options, &program] { return run_info(*options, program); }};
}

Command add_data_prepare(CLI::App& data_app, const ProgramOptions& program) {
  const auto options = std::make_shared<DataOptions>();
  CLI::App* app = add_command(data_app, "prepare",
                              "Tokenise a data set into a folder of memory-mapped shards\n\n"
                              "train --data takes the folder; so does another machine.",
                              "routing data prepare pg19 --vocabulary-size 8000 --out data/pg19-8k");
  add_shared(*app, *options);
  OptionGroup(*app, "Output").add({"--out DIR", "folder to make"}, options->out);
  return {app, [options, &program] { return run_prepare(*options, program); }};
}

}  // namespace routing
