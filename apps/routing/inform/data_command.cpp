#include "commands.h"
#include "routing/core/error.h"
#include "routing/data/dataset.h"
#include "shell/command_line.h"
#include "shell/output.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

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
  for (std::string* path : {&config.path, &config.vocabulary, &config.cache}) {
    if (!path->empty()) *path = tidy_path(*path).string();
  }
  return config;
}

PrepareOptions notes_on_stderr(const ProgramOptions& program, bool train_needed) {
  if (program.quiet) return {.train_needed = train_needed};
  return {.train_needed = train_needed,
          .notes = [](const std::string& line) { std::cerr << "routing: " << line << "\n"; }};
}

void print_json(const Dataset& data) {
  const DataFacts& facts = data.facts();
  nlohmann::ordered_json parts = nlohmann::ordered_json::object();
  for (const auto& [name, part] : data.parts()) {
    parts[name] = {{"tokens", part.tokens.size()}, {"documents", part.documents}};
    if (!facts.is_image()) parts[name]["bytes"] = part.bytes;
    if (part.words > 0) parts[name]["words"] = part.words;
  }
  nlohmann::ordered_json object{{"data", data.path().string()},
                                {"format", facts.format},
                                {"tokens", to_string(facts.tokens)},
                                {"vocabulary_size", facts.vocabulary_size},
                                {"tokenizer_hash", facts.tokenizer_hash}};
  if (facts.is_image()) object["image"] = {{"height", facts.image.height}, {"width", facts.image.width}};
  object["parts"] = parts;
  object["whole"] = facts.missing.empty();
  if (!facts.missing.empty()) object["missing"] = facts.missing;
  if (!facts.cut.empty()) object["cut"] = facts.cut;
  std::cout << object << "\n";
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

void print_table(const Dataset& data) {
  const DataFacts& facts = data.facts();
  const std::string tokens(to_string(facts.tokens));
  std::vector<std::pair<std::string, std::string>> lines{
      {"data", data.path().string()},
      {"format", facts.format + (facts.is_image() ? ", images of " + std::to_string(facts.image.height) + " x " +
                                                        std::to_string(facts.image.width)
                                                  : "")},
      {"tokens", tokens + ", " + grouped(facts.vocabulary_size) + " different"}};
  if (facts.tokens == TokenKind::words) lines.back().second += ", one <eos> per line counted";
  if (facts.tokens == TokenKind::subwords) lines.back().second += ", one end per document counted";
  for (const auto& [name, part] : data.parts()) {
    std::string line = grouped(part.tokens.size()) + " " + tokens;
    if (const char* const documents = what_documents_are(facts.format); documents != nullptr) {
      line += ", " + grouped(part.documents) + " " + documents;
    }
    if (facts.tokens == TokenKind::subwords && part.words > 0) line += ", " + grouped(part.words) + " words";
    if (facts.tokens != TokenKind::bytes && part.bytes > 0) line += ", " + grouped(part.bytes) + " bytes";
    lines.emplace_back(name, line);
  }
  if (!facts.cut.empty()) lines.emplace_back("cut", facts.cut);
  lines.emplace_back("whole",
                     facts.missing.empty() ? "yes" : "no, figures are labelled partial data: " + facts.missing);
  print_pairs(lines, 8);
}

int show(const Dataset& data, const DataOptions& options) {
  if (options.json) {
    print_json(data);
  } else {
    print_table(data);
  }
  return kDone;
}

int run_info(const DataOptions& options, const ProgramOptions& program) {
  // Without a vocabulary one has to be made, from whatever there is.
  const Dataset data(config_of(options), notes_on_stderr(program, options.config.vocabulary.empty()));
  data.verify();
  return show(data, options);
}

int run_prepare(const DataOptions& options, const ProgramOptions& program) {
  DataConfig config = config_of(options);
  if (options.out.empty()) throw UsageError("--out is required", "name a folder, such as --out data/prepared");
  require<ConfigError>(!is_prepared(config.path), config.path, ": is prepared already; train on it with --data");
  prepare_data(config, options.out, notes_on_stderr(program, true));
  config.path = options.out;
  return show(Dataset(config), options);
}

void add_shared(CLI::App& app, DataOptions& options) {
  DataConfig& config = options.config;
  const DataConfig defaults;
  config.path.clear();
  app.add_option("PATH", config.path, "a file, or the folder of a data set")->required()->group("Data");
  app.add_option("--format", options.format,
                 "bytes, enwik8, wikitext, pg19, text, cifar10, imagenet64, images, or auto to look")
      ->type_name("F")
      ->capture_default_str()
      ->group("Data");
  app.add_option("--tokens", options.tokens, "bytes, words, subwords or subpixels; auto is what the format usually has")
      ->type_name("KIND")
      ->capture_default_str()
      ->group("Data");
  app.add_option("--split", config.split, "train/valid/test of data in one piece")
      ->type_name("A/B/C")
      ->capture_default_str()
      ->group("Data");
  app.add_option("--vocabulary", config.vocabulary, "file of words or SentencePiece model; default: made from train")
      ->type_name("FILE")
      ->group("Data");
  app.add_option("--vocabulary-size", config.vocabulary_size, "pieces of a SentencePiece model that is made")
      ->type_name("N")
      ->check(whole_number(2))
      ->capture_default_str()
      ->group("Data");
  app.add_option("--image-size", config.image_size, "shrink images to this height and width by averaging")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Data");
  app.add_flag("--require-whole", config.require_whole, "refuse a part of a data set")
      ->disable_flag_override()
      ->group("Data");
  app.add_flag("--json", options.json, "print the result as JSON")->disable_flag_override()->group("Output");
}

Command add_data_info(CLI::App& data_app, const ProgramOptions& program) {
  const auto options = std::make_shared<DataOptions>();
  CLI::App* app = data_app.add_subcommand("info",
                                          "What is there: format, parts, tokens, words, and whether it is whole\n\n"
                                          "Text and images are tokenised on the first visit and kept in "
                                          "$XDG_CACHE_HOME/routing, where training finds them;\n"
                                          "the checksums of what is kept are verified.");
  add_shared(*app, *options);
  app->add_option("--cache", options->config.cache, "folder for tokenised data")->type_name("DIR")->group("Data");
  app->footer("Example  routing data info wikitext-103\n" + exit_code_line());
  return {app, [options, &program] { return run_info(*options, program); }};
}

Command add_data_prepare(CLI::App& data_app, const ProgramOptions& program) {
  const auto options = std::make_shared<DataOptions>();
  CLI::App* app = data_app.add_subcommand("prepare",
                                          "Tokenise a data set into a folder of memory-mapped shards\n\n"
                                          "train --data takes the folder; so does another machine.");
  add_shared(*app, *options);
  app->add_option("--out", options->out, "folder to make")->type_name("DIR")->group("Output");
  app->footer("Example  routing data prepare pg19 --vocabulary-size 8000 --out data/pg19-8k\n" + exit_code_line());
  return {app, [options, &program] { return run_prepare(*options, program); }};
}

}  // namespace

std::vector<Command> add_data(CLI::App& program, const ProgramOptions& options) {
  CLI::App* app = program.add_subcommand("data",
                                         "Look at data sets and prepare them\n\n"
                                         "enwik8, WikiText-103 and -2, PG-19, CIFAR-10, ImageNet-64, any text, any "
                                         "folder of images. docs/data.md describes\n"
                                         "their layouts.");
  app->footer("Example  routing data info cifar-10-batches-bin\n" + exit_code_line());
  return {add_data_info(*app, options), add_data_prepare(*app, options)};
}

}  // namespace routing
