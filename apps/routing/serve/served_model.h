// A model that is loaded and decodes for many requests at a time.
#pragma once

#include "routing/data/tokenizers/tokenizer.h"
#include "routing/generation/completion_batch.h"
#include "routing/generation/decoder.h"
#include "routing/model/sequence_model.h"
#include "routing/model/weights.h"
#include "routing/ops/precision.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace routing {

// Which file it was, so that another in its place is noticed.
struct FileStamp {
  std::filesystem::path path = {};
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;
  std::int64_t changed = 0;  // nanoseconds since 1970
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
// Throws a FileError if there is no such file.
FileStamp stamp_of(const std::filesystem::path& path);

struct ServedModel {
  std::string name = {};
  FileStamp file = {};
  std::shared_ptr<SequenceModel> model = {};
  ModelNotes notes = {};
  std::shared_ptr<const Tokenizer> tokenizer = {};  // of encoder-decoders their symbols; null for images
  MatmulPrecision precision = MatmulPrecision::fp32;
  std::unique_ptr<Decoder> decoder = {};
  std::unique_ptr<CompletionBatch> batch = {};
  std::uint64_t identity = 0;  // no two models of the process have the same
  std::int64_t last_used = 0;  // a count of requests, the larger the later

  const ExperimentConfig& config() const { return model->config(); }
  bool is_image() const { return config().model.image_height > 0; }
  bool reads_source() const { return model->reads_source(); }
  // Does anybody wait for it?
  bool is_busy() const;
  // An ApiError for models that have no text: `use` says what to call instead.
  const Tokenizer& text_of(const std::string& use) const;
  // What ends a choice, as in `routing generate`: -1 for nothing.
  std::int64_t end_token() const;
  // "validity" and, of partial data, "data_label".
  void add_labels(nlohmann::ordered_json& object) const;
};

}  // namespace routing
