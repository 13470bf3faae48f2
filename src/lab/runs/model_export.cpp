#include "lab/runs/model_export.h"

#include "lab/runs/zip_folder.h"
#include "routing/config/toml.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/sha256.h"
#include "routing/data/prepared.h"
#include "routing/data/tokenizers/tokenizers.h"
#include "routing/storage/safetensors_metadata.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <unistd.h>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kSums = "SHA256SUMS";
// The sums last: until they are in place, those of before say that something is amiss.
constexpr std::array kNames{kModel,      "config.toml", "vocabulary.txt", "subwords.model", "metrics.jsonl",
                            "README.md", kSums};

void require_tokenizer(const ExportSource& source) {
  const std::string learned = source.model.text("tokenizer");
  if (learned.empty() || learned == DataFacts().tokenizer_hash) return;
  require<FileError>(!source.tokenizer.empty(), source.model.path.string(),
                     ": the vocabulary of its tokens is not kept in the run's folder; put it there as vocabulary.txt "
                     "(words) or subwords.model");
  const std::string found = tokenizer_hash(to_string(exported_tokens(source)), read_file(source.tokenizer));
  require<FileError>(found == learned, source.tokenizer.string(), ": is vocabulary ", found, ", but ",
                     source.model.path.string(), " learned the tokens of ", learned, "; put the run's own there");
}

// Is there something that an export may take the place of?
void require_free(const ExportTarget& target) {
  std::error_code ignored;
  const fs::path& path = target.path;
  if (!fs::exists(path, ignored)) return;
  if (!is_zip(path) && fs::is_directory(path, ignored)) {
    if (fs::is_empty(path, ignored)) return;
    const bool ours = fs::exists(path / kModel, ignored) && fs::exists(path / kSums, ignored);
    require<ConfigError>(ours, path.string(), ": is there and holds something else than an exported model; choose ",
                         "another `export`");
  } else {
    require<ConfigError>(is_zip(path) && fs::is_regular_file(path, ignored), path.string(),
                         ": is there and is not a folder; choose another `export`, a folder or a file *.zip");
  }
  require<ConfigError>(target.replace, path.string(),
                       ": is there already; write over it with `replace`, or choose another `export`");
}

class TemporaryFolderBeside {
 public:
  explicit TemporaryFolderBeside(const fs::path& path)
      : folder_(path.string() + ".part-" + std::to_string(::getpid())) {
    std::error_code error;
    fs::remove_all(folder_, error);
    fs::create_directories(folder_, error);
    require<FileError>(!error, folder_.string(), ": cannot be made: ", error.message(),
                       "; choose an `export` that can be written");
  }
  ~TemporaryFolderBeside() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  TemporaryFolderBeside(const TemporaryFolderBeside&) = delete;
  TemporaryFolderBeside& operator=(const TemporaryFolderBeside&) = delete;
  const fs::path& path() const { return folder_; }

 private:
  fs::path folder_;
};

void rename_or_throw(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  require<FileError>(!error, to.string(), ": cannot be put in place: ", error.message(),
                     "; see that the folder can be written");
}

// Into a folder that is there already.
void move_files(const fs::path& from, const fs::path& to) {
  for (const char* name : kNames) {
    std::error_code ignored;
    if (fs::exists(from / name, ignored)) {
      rename_or_throw(from / name, to / name);
    } else {
      fs::remove(to / name, ignored);
    }
  }
  sync_folder(to);
}

std::vector<ExportedFile> write_files(const ExportSource& source, const std::string& card, const fs::path& folder) {
  const std::string config = to_toml(portable_config(source));
  copy_safetensors(source.model.path, folder / kModel, {{"config", config}});
  write_file_at_once(folder / "config.toml", config);
  if (!source.tokenizer.empty()) {
    write_file_at_once(folder / source.tokenizer.filename(), read_file(source.tokenizer));
  }
  if (!source.metrics.empty()) write_file_at_once(folder / "metrics.jsonl", read_file(source.metrics));
  write_file_at_once(folder / "README.md", card);
  std::vector<ExportedFile> files;
  std::string sums;
  for (const char* name : kNames) {
    std::error_code ignored;
    if (!fs::exists(folder / name, ignored)) continue;
    const MappedFile file(folder / name);
    sums += sha256(file.bytes()) + "  " + name + "\n";
    files.push_back({name, static_cast<std::int64_t>(file.size())});
  }
  write_file_at_once(folder / kSums, sums);
  files.push_back({kSums, static_cast<std::int64_t>(sums.size())});
  return files;
}

}  // namespace

bool is_zip(const fs::path& path) {
  return path.extension() == ".zip";
}

TokenKind exported_tokens(const ExportSource& source) {
  const ExperimentConfig config = source.model.config();
  if (config.data.tokens != TokenKind::automatic) return config.data.tokens;
  if (config.model.image_height > 0) return TokenKind::subpixels;
  for (const TokenKind kind : {TokenKind::words, TokenKind::subwords}) {
    if (!source.tokenizer.empty() && source.tokenizer == tokenizer_file(source.tokenizer.parent_path(), kind)) {
      return kind;
    }
  }
  return config.data.path.empty() ? TokenKind::automatic : TokenKind::bytes;
}

ExperimentConfig portable_config(const ExportSource& source) {
  ExperimentConfig config = source.model.config();
  config.data.tokens = exported_tokens(source);
  config.data.path.clear();
  config.data.vocabulary.clear();
  config.data.cache.clear();
  return config;
}

std::vector<ExportedFile> export_model(const ExportSource& source, const std::string& card,
                                       const ExportTarget& target) {
  require_free(target);
  require_tokenizer(source);
  // One name, whether it was given with a slash at its end or not.
  const fs::path path = tidy_path(target.path);
  const TemporaryFolderBeside folder(path);
  std::vector<ExportedFile> files = write_files(source, card, folder.path());
  std::error_code ignored;
  if (is_zip(path)) {
    write_zip(path, folder.path(), path.stem().string());
  } else if (fs::exists(path, ignored)) {
    move_files(folder.path(), path);
  } else {
    rename_or_throw(folder.path(), path);
    sync_folder(path.parent_path());
  }
  return files;
}

}  // namespace routing
