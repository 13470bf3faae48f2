// Data for training and evaluation: token ids of three parts in memory-mapped files, whatever they were made from.
#pragma once

#include "routing/data/prepared.h"
#include "routing/data/shard.h"
#include "routing/data/sources/byte_corpus.h"
#include "routing/data/token_view.h"
#include "routing/data/tokenizers/tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace routing {

struct DatasetPart {
  TokenView tokens;
  std::int64_t documents = 0;  // books, lines, images
  std::int64_t words = 0;      // 0 for images and bytes, which are not looked into
  std::int64_t bytes = 0;      // of the text; 0 for images
};

// Are data there that a Dataset could be made of, as far as that can be said without reading them? Throws as it does.
void require_data(const DataConfig& config);

class Dataset {
 public:
  // config.path is a folder of prepared data, a file read as bytes, or a set that is tokenised now and kept in the
  // cache; opened a second time it is only mapped. options.notes hears what takes
  // time.
  //
  // Throws  ConfigError  a part of a set under data.require_whole, or settings that do not fit
  //         FileError    files that are not there, damaged or of another kind; each error says which and what to do
  explicit Dataset(const DataConfig& config, const PrepareOptions& options = {});

  const DataFacts& facts() const { return facts_; }
  // For people; of several, all of them with commas between.
  const std::filesystem::path& path() const { return path_; }
  // A ConfigError if there is no such part or it is empty.
  const DatasetPart& part(const std::string& name) const;
  // Is there such a part, and something in it?
  bool has(const std::string& name) const;
  // All parts, in the order train, valid, test; some may be empty.
  const std::vector<std::pair<std::string, DatasetPart>>& parts() const { return parts_; }
  // Of the ids of a part, as 16 hexadecimal digits: tells a run whether its data are still the same.
  std::string checksum(const std::string& name) const;
  // Null for images. Made when first asked for.
  const Tokenizer* tokenizer() const;
  // The file the tokeniser came from; empty for bytes and images.
  std::filesystem::path tokenizer_path() const;
  // Checks the checksums of all shards, of any size.
  void verify() const;

 private:
  void open_bytes(const DataConfig& config, DataFormat format);
  void open_folder(const std::filesystem::path& folder);
  void require_as_asked(const DataConfig& config) const;

  std::filesystem::path path_;
  std::filesystem::path folder_;  // of prepared data; empty for bytes
  DataFacts facts_;
  std::unique_ptr<ByteCorpus> corpus_;
  std::map<std::string, Shard> shards_;
  std::vector<std::pair<std::string, DatasetPart>> parts_;
  mutable std::unique_ptr<Tokenizer> tokenizer_;
};

// The configuration with model.vocab_size = 0 replaced by that of the data. A ConfigError if model and data do not fit:
// a vocabulary that is too small, an image of another size, text for a model of images or the other way round.
ExperimentConfig fitted_to(ExperimentConfig config, const DataFacts& facts);

}  // namespace routing
