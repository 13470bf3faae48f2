#include "routing/data/dataset.h"

#include "routing/config/text/path_list.h"
#include "routing/config/text/split_text.h"
#include "routing/config/words.h"
#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/data/formats.h"
#include "routing/data/sources/split.h"
#include "routing/data/tokenizers/tokenizers.h"

#include <algorithm>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kWholeEnwik8 = 100'000'000;
constexpr std::int64_t kByteVocabulary = 256;

std::string missing_bytes(DataFormat format, std::int64_t bytes) {
  if (format != DataFormat::enwik8 || bytes == kWholeEnwik8) return "";
  return std::to_string(bytes) + " of " + std::to_string(kWholeEnwik8) + " bytes";
}

}  // namespace

void require_data(const DataConfig& config) {
  if (is_prepared(config.path)) {
    read_data_facts(config.path);
    return;
  }
  const AnySource source = open_source(look_at_data(config), config.image_size);
  require_whole_if_asked(config, facts_of(source).missing);
}

Dataset::Dataset(const DataConfig& config, const PrepareOptions& options) : path_(shown_paths(config.path)) {
  if (is_prepared(path_)) {
    open_folder(path_);
    require_as_asked(config);
  } else {
    const DataInSight data = look_at_data(config);
    if (data.is_own_shard) {
      open_bytes(config, data.format);
    } else {
      const fs::path folder = cache_folder(config, options.train_needed);
      if (!is_prepared(folder)) {
        if (options.notes) options.notes("tokenising " + path_.string() + " into " + folder.string() + ", once");
        prepare_data(config, folder, options);
      }
      open_folder(folder);
    }
  }
  require_whole_if_asked(config, facts_.missing);
}

// What is prepared cannot be changed by settings any more.
void Dataset::require_as_asked(const DataConfig& config) const {
  const auto same = [&](const char* key, const std::string& asked, const std::string& is) {
    require<ConfigError>(asked == is, path_.string(), ": was prepared with ", key, " ", is, ", but ", asked,
                         " is asked for; leave out the setting, or prepare the data anew");
  };
  if (config.format != DataFormat::automatic) same("data.format", std::string(to_string(config.format)), facts_.format);
  if (config.tokens != TokenKind::automatic) {
    same("data.tokens", std::string(to_string(config.tokens)), std::string(to_string(facts_.tokens)));
  }
  if (config.image_size > 0)
    same("data.image_size", std::to_string(config.image_size), std::to_string(facts_.image.height));
  if (!config.vocabulary.empty()) {
    same("a vocabulary of hash", load_tokenizer(to_string(facts_.tokens), config.vocabulary)->hash(),
         facts_.tokenizer_hash);
  }
}

void Dataset::open_bytes(const DataConfig& config, DataFormat format) {
  corpus_ = std::make_unique<ByteCorpus>(config.path);
  facts_ = {.format = std::string(to_string(format)),
            .missing = missing_bytes(format, corpus_->size()),
            .cut = "train, valid and test are cut from one piece by " + config.split};
  const CorpusSplit split = split_corpus(config.split, corpus_->size(), config.path);
  for (const std::string& name : split_names()) {
    const SplitBounds& bounds = part_named(split, name);
    parts_.emplace_back(name, DatasetPart{.tokens = corpus_->part(bounds), .documents = 1, .bytes = bounds.size()});
  }
}

void Dataset::open_folder(const fs::path& folder) {
  folder_ = folder;
  facts_ = read_data_facts(folder);
  for (const std::string& name : split_names()) {
    const Shard& shard = shards_.emplace(name, folder / (name + ".shard")).first->second;
    require<FileError>(shard.facts().tokenizer_hash == facts_.tokenizer_hash, (folder / (name + ".shard")).string(),
                       ": was made with tokeniser ", shard.facts().tokenizer_hash, ", but ", kFactsFile, " says ",
                       facts_.tokenizer_hash, "; prepare the data again with  routing data prepare");
    parts_.emplace_back(name, DatasetPart{.tokens = shard.tokens(),
                                          .documents = shard.facts().documents,
                                          .words = shard.facts().words,
                                          .bytes = shard.facts().bytes});
  }
}

const DatasetPart& Dataset::part(const std::string& name) const {
  require_word(name, "part of the data", split_names());
  const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const auto& entry) { return entry.first == name; });
  require<ConfigError>(!found->second.tokens.empty(), path_.string(), ": its part ", name,
                       " is empty; choose another part, or give it some in data.split");
  return found->second;
}

bool Dataset::has(const std::string& name) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const auto& entry) { return entry.first == name && !entry.second.tokens.empty(); });
}

std::string Dataset::checksum(const std::string& name) const {
  if (const auto shard = shards_.find(name); shard != shards_.end()) return shard->second.checksum();
  return hexadecimal(xxhash64(part(name).tokens.bytes()));
}

const Tokenizer* Dataset::tokenizer() const {
  if (facts_.is_image()) return nullptr;
  if (!tokenizer_) {
    tokenizer_ = load_tokenizer(to_string(facts_.tokens), tokenizer_path());
    require<FileError>(facts_.tokens == TokenKind::bytes || tokenizer_->hash() == facts_.tokenizer_hash,
                       tokenizer_path().string(), ": has hash ", tokenizer_->hash(), ", but the data were made with ",
                       facts_.tokenizer_hash, "; prepare the data again with  routing data prepare");
  }
  return tokenizer_.get();
}

fs::path Dataset::tokenizer_path() const {
  return folder_.empty() ? fs::path() : tokenizer_file(folder_, facts_.tokens);
}

void Dataset::verify() const {
  for (const auto& [name, shard] : shards_) shard.verify();
}

ExperimentConfig fitted_to(ExperimentConfig config, const DataFacts& facts) {
  ModelConfig& model = config.model;
  if (model.vocab_size == 0) model.vocab_size = facts.vocabulary_size;
  require<ConfigError>(model.vocab_size >= facts.vocabulary_size, "model.vocab_size is ", model.vocab_size,
                       ", but the data have ", facts.vocabulary_size,
                       " different tokens; set model.vocab_size=", facts.vocabulary_size,
                       ", or 0 for that of the data");
  const ImageShape shape{model.image_height, model.image_width};
  const auto words = [](const ImageShape& image) {
    return image.height == 0 ? std::string("text")
                             : "images of " + std::to_string(image.height) + " x " + std::to_string(image.width);
  };
  require<ConfigError>(shape == facts.image, "the model is for ", words(shape), ", but the data are ",
                       words(facts.image), "; set model.image_height=", facts.image.height,
                       " and model.image_width=", facts.image.width, ", or choose other data");
  require<ConfigError>(!facts.is_image() || model.vocab_size == kByteVocabulary, "model.vocab_size is ",
                       model.vocab_size, ", but images have 256 values; set model.vocab_size=256");
  return config;
}

}  // namespace routing
