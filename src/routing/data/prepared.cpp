#include "routing/data/prepared.h"

#include "routing/config/text/number_text.h"
#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/hash.h"
#include "routing/data/formats.h"
#include "routing/data/images/png_image.h"
#include "routing/data/shard.h"
#include "routing/data/sources/cuts.h"
#include "routing/data/sources/text_tree.h"
#include "routing/data/tokenizers/subword_trainer.h"
#include "routing/data/tokenizers/tokenizers.h"
#include "routing/data/tokenizers/word_vocabulary.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <unistd.h>
#include <utility>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

bool is_white(char letter) {
  return letter == ' ' || (letter >= '\t' && letter <= '\r');
}

std::string path_of(const std::string& name) {
  return name + ".shard";
}

// Bytes are bytes, whether they come from a file or from a shard.
std::string hash_of(const Tokenizer& tokenizer) {
  return tokenizer.kind() == "bytes" ? DataFacts().tokenizer_hash : tokenizer.hash();
}

// WikiText has done it itself; its counts are known everywhere.
WordsSeenOnce words_seen_once(const SourceFacts& facts) {
  return facts.format == "wikitext" ? WordsSeenOnce::kept : WordsSeenOnce::unknown;
}

// The words or subwords of what train holds, or those of the file that is given.
std::unique_ptr<Tokenizer> tokenizer_for(const DataConfig& config, TokenKind kind, const TextSource& source,
                                         const Cut& train) {
  const std::string name(to_string(kind));
  if (kind == TokenKind::bytes || !config.vocabulary.empty()) return load_tokenizer(name, config.vocabulary);
  require<ConfigError>(train.end > train.begin, shown_paths(config.path),
                       ": has no train part to make a vocabulary from; name one with data.vocabulary");
  if (kind == TokenKind::words) {
    WordCounter counter;
    read_cut(source, train, [&](std::string_view text, bool) { counter.add(text); });
    return counter.vocabulary(words_seen_once(source.facts()));
  }
  SubwordTrainer trainer({.vocabulary_size = config.vocabulary_size});
  read_cut(source, train, [&](std::string_view text, bool) { trainer.add(text); });
  return trainer.train();
}

ShardFacts write_text(const TextSource& source, const Cut& cut, const Tokenizer& tokenizer, const fs::path& path) {
  ShardWriter writer(path, tokenizer.vocabulary_size(), hash_of(tokenizer));
  ShardFacts counts;
  std::vector<std::int32_t> ids;
  read_cut(source, cut, [&](std::string_view text, bool ends_document) {
    ids.clear();
    tokenizer.encode(text, ids);
    // Words have an end of their own for every line already.
    if (ends_document && tokenizer.kind() == "subwords") ids.push_back(static_cast<std::int32_t>(tokenizer.end_id()));
    writer.write(std::span<const std::int32_t>(ids));
    counts.documents += ends_document ? 1 : 0;
    counts.words += count_words(text);
    counts.bytes += static_cast<std::int64_t>(text.size());
  });
  return writer.finish(counts);
}

ShardFacts write_images(const ImageSource& source, const Cut& cut, const DataFacts& facts, const fs::path& path) {
  ShardWriter writer(path, facts.vocabulary_size, facts.tokenizer_hash);
  ShardFacts counts{.record_length = source.shape().values()};
  read_cut(source, cut, [&](std::span<const std::uint8_t> values) {
    writer.write(values);
    ++counts.documents;
  });
  return writer.finish(counts);
}

std::string joined_notes(const std::string& missing, const std::string& cut) {
  return missing.empty() || cut.empty() ? missing : missing + "; " + cut;
}

void write_facts(const DataFacts& facts, const std::string& source, const fs::path& folder) {
  const Json json{{"routing_data", kVersion},
                  {"source", source},
                  {"format", facts.format},
                  {"tokens", to_string(facts.tokens)},
                  {"vocabulary_size", facts.vocabulary_size},
                  {"tokenizer_hash", facts.tokenizer_hash},
                  {"image_height", facts.image.height},
                  {"image_width", facts.image.width},
                  {"missing", facts.missing},
                  {"cut", facts.cut}};
  write_file_at_once(folder / kFactsFile, json.dump(2) + "\n");
}

// What a process that is gone left behind when it was killed while it prepared the same data.
void remove_leftovers(const fs::path& final_place) {
  const std::string prefix = final_place.filename().string() + ".part-";
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator entry(final_place.parent_path(), error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::optional<std::int32_t> process = number_in<std::int32_t>(std::string_view(name).substr(prefix.size()));
    if (process && ::kill(*process, 0) != 0 && errno == ESRCH) leftovers.push_back(entry->path());
  }
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, error);
}

// Removes an unfinished folder on every way out.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(const fs::path& final_place)
      : folder_(final_place.string() + ".part-" + std::to_string(::getpid())) {
    std::error_code error;
    remove_leftovers(final_place);
    fs::remove_all(folder_, error);
    fs::create_directories(folder_, error);
    require<FileError>(!error, folder_.string(), ": cannot be made: ", error.message(),
                       "; choose a folder that you may write to, with `folder` or data.cache");
  }
  ~UnfinishedFolder() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const fs::path& path() const { return folder_; }
  // Two processes may prepare the same data at the same time: the later one finds the place taken by equal files.
  void move_to(const fs::path& place) const {
    std::error_code error;
    fs::rename(folder_, place, error);
    require<FileError>(!error || is_prepared(place), place.string(), ": cannot be written: ", error.message(),
                       "; choose a folder that does not exist yet");
    sync_folder(place.parent_path().empty() ? "." : place.parent_path());
  }

 private:
  fs::path folder_;
};

// What is made into shards, and which tokens.
struct OpenedData {
  TokenKind tokens;
  AnySource source;
};

void fill(const DataConfig& config, const OpenedData& data, const fs::path& folder, const PrepareOptions& options) {
  const auto say = [&](const std::string& line) {
    if (options.notes) options.notes(line);
  };
  const AnySource& source = data.source;
  const SourceFacts& source_facts = facts_of(source);
  DataFacts facts{.format = source_facts.format, .tokens = data.tokens};
  const auto size_of = [&](const std::string& part) {
    if (const auto* const images = std::get_if<std::unique_ptr<ImageSource>>(&source)) return (*images)->images(part);
    return text_bytes(*std::get<std::unique_ptr<TextSource>>(source), part);
  };
  const CutPlan plan = plan_cuts(source_facts, size_of, {.split = config.split, .train_needed = options.train_needed});
  facts.cut = joined({plan.note, source_facts.note});
  facts.missing = joined_notes(source_facts.missing, plan.note);
  const auto report = [&](const Cut& cut, const ShardFacts& counts) {
    say(cut.name + ": " + std::to_string(counts.tokens) + " tokens");
  };
  if (const auto* const images = std::get_if<std::unique_ptr<ImageSource>>(&source)) {
    facts.image = (*images)->shape();
    for (const Cut& cut : plan.cuts) report(cut, write_images(**images, cut, facts, folder / path_of(cut.name)));
  } else {
    const TextSource& text = *std::get<std::unique_ptr<TextSource>>(source);
    if (facts.tokens != TokenKind::bytes && config.vocabulary.empty()) say("making a vocabulary from train");
    const auto tokenizer = tokenizer_for(config, facts.tokens, text, plan.cuts.front());
    facts.vocabulary_size = tokenizer->vocabulary_size();
    facts.tokenizer_hash = hash_of(*tokenizer);
    if (const fs::path file = tokenizer_file(folder, facts.tokens); !file.empty()) tokenizer->save(file);
    for (const Cut& cut : plan.cuts) report(cut, write_text(text, cut, *tokenizer, folder / path_of(cut.name)));
  }
  write_facts(facts, shown_paths(tidy_paths(config.path)), folder);
}

OpenedData data_to_prepare(const DataConfig& config) {
  const DataInSight data = look_at_data(config);
  require<ConfigError>(
      !data.is_own_shard, config.path,
      ": is a file of bytes, which needs no preparation; train on it as it is, or choose other `data.tokens`");
  return {data.tokens, open_source(data, config.image_size)};
}

// Of a file's size and time; of a folder's own time and those of all below it, as long as they are not so many that
// looking at all of them takes longer than a start should; of the files that a pattern stands for.
std::uint64_t fingerprint(const fs::path& path) {
  constexpr std::size_t most_files = 20'000;
  const auto of_one = [](const fs::path& file) {
    std::error_code ignored;
    const auto time = static_cast<std::int64_t>(fs::last_write_time(file, ignored).time_since_epoch().count());
    const auto size = fs::is_directory(file, ignored) ? 0 : fs::file_size(file, ignored);
    const std::string text = file.filename().string() + ":" + std::to_string(size) + ":" + std::to_string(time);
    return xxhash64(std::as_bytes(std::span(text)));
  };
  std::uint64_t sum = of_one(path);
  if (is_pattern(path)) {
    for (const fs::path& file : texts_matching(path).files) sum += of_one(file);
    return sum;
  }
  std::error_code error;
  if (!fs::is_directory(path, error)) return sum;
  std::size_t files = 0;
  const fs::recursive_directory_iterator end;
  for (fs::recursive_directory_iterator entry(path, error); !error && entry != end; entry.increment(error)) {
    if (++files > most_files) break;
    sum += of_one(entry->path());  // a sum, as folders list their files in any order
  }
  return sum;
}

fs::path cache_root(const DataConfig& config) {
  if (!config.cache.empty()) return config.cache;
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return fs::path(cache) / "routing";
  if (const std::string home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache" / "routing";
  return fs::temp_directory_path() / "routing-cache";
}

// For messages. Lists and objects by their type alone: writing them goes as deep as they nest, which a file decides.
std::string shown(const Json& value) {
  return value.is_structured() ? value.type_name() : value.dump();
}

// A size or a count. A number with a fraction, a negative one or one beyond any file is an error of the library.
std::int64_t size_at(const Json& json, const char* key, std::int64_t smallest) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 31U;
  const Json& value = json.at(key);
  require<FileError>(value.is_number_integer() && value >= smallest && value <= kLargest, key, " is ", shown(value),
                     ", but a whole number from ", smallest, " to ", kLargest, " was expected");
  return value.get<std::int64_t>();
}

}  // namespace

fs::path tidy_path(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

std::string tidy_paths(const std::string& list) {
  std::vector<std::string> paths = paths_in(list);
  for (std::string& path : paths) {
    if (path != kStandardInput) path = tidy_path(path).string();
  }
  return path_list(paths);
}

void require_whole_if_asked(const DataConfig& config, const std::string& missing) {
  require<ConfigError>(!config.require_whole || missing.empty(), shown_paths(config.path), ": is not whole: ", missing,
                       "; fetch the rest, or leave out `data.require_whole` to have figures labelled");
}

std::int64_t count_words(std::string_view text) {
  std::int64_t words = 0;
  bool inside = false;
  for (const char letter : text) {
    const bool white = is_white(letter);
    if (!white && !inside) ++words;
    inside = !white;
  }
  return words;
}

fs::path tokenizer_file(const fs::path& folder, TokenKind tokens) {
  if (tokens == TokenKind::words) return folder / "vocabulary.txt";
  return tokens == TokenKind::subwords ? folder / "subwords.model" : fs::path();
}

bool is_prepared(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / kFactsFile, ignored) && fs::is_regular_file(folder / "train.shard", ignored);
}

DataFacts read_data_facts(const fs::path& folder) {
  const fs::path path = folder / kFactsFile;
  const Json json = Json::parse(read_file(path), nullptr, false);
  require<FileError>(json.is_object() && json.contains("routing_data"), path.string(),
                     ": does not describe prepared data; prepare them again with  routing data prepare");
  require<FileError>(json["routing_data"] == kVersion, path.string(), ": is of version ", shown(json["routing_data"]),
                     ", but this program reads ", kVersion, "; prepare the data again with  routing data prepare");
  try {
    DataFacts facts{.format = json.at("format").get<std::string>(),
                    .tokens = parse_word<TokenKind>(json.at("tokens").get<std::string>(), "data.tokens"),
                    .vocabulary_size = size_at(json, "vocabulary_size", 1),
                    .tokenizer_hash = json.at("tokenizer_hash").get<std::string>(),
                    .image = {size_at(json, "image_height", 0), size_at(json, "image_width", 0)},
                    .missing = json.at("missing").get<std::string>(),
                    .cut = json.at("cut").get<std::string>()};
    require<FileError>(facts.image.height <= kLargestPngSide && facts.image.width <= kLargestPngSide &&
                           (facts.image.height > 0) == (facts.image.width > 0),
                       "images of ", to_string(facts.image), " cannot be");
    return facts;
  } catch (const std::exception& error) {  // ours, or one of JSON
    throw FileError(path.string() + ": " + error.what() + "; prepare the data again with  routing data prepare");
  }
}

void prepare_data(const DataConfig& config, const fs::path& folder, const PrepareOptions& options) {
  std::error_code error;
  require<FileError>(!fs::exists(folder, error) || fs::is_empty(folder, error), folder.string(),
                     ": is there already and not empty; choose another folder or remove it");
  const OpenedData data = data_to_prepare(config);
  require_whole_if_asked(config, facts_of(data.source).missing);
  const fs::path place = tidy_path(folder);
  const UnfinishedFolder unfinished(place);
  fill(config, data, unfinished.path(), options);
  unfinished.move_to(place);
}

fs::path cache_folder(const DataConfig& config, bool train_needed) {
  const OpenedData data = data_to_prepare(config);
  const SourceFacts& facts = facts_of(data.source);
  XxHash64 hash;
  const auto add = [&](const std::string& text) {
    hash.update(std::as_bytes(std::span(text)));
    hash.update(std::as_bytes(std::span("\0", 1)));
  };
  add(std::to_string(kVersion) + facts.format + std::string(to_string(data.tokens)));
  add(std::to_string(config.image_size) + config.split + facts.missing);
  if (!train_needed && facts.part("train") == nullptr) add("no train needed");
  const bool made = config.vocabulary.empty();
  add(made && data.tokens == TokenKind::subwords ? std::to_string(config.vocabulary_size) : "");
  if (made && data.tokens == TokenKind::words && words_seen_once(facts) == WordsSeenOnce::unknown) add("once: unknown");
  if (!config.vocabulary.empty()) {
    const std::string vocabulary = read_file(config.vocabulary);
    add(hexadecimal(xxhash64(std::as_bytes(std::span(vocabulary)))));
  }
  for (const SourcePart& part : facts.parts) {
    add(part.name);
    for (const fs::path& file : part.files) {
      add(tidy_path(file).string() + ":" + std::to_string(fingerprint(file)));
    }
  }
  return cache_root(config) / (facts.format + "-" + hexadecimal(hash.digest()));
}

}  // namespace routing
