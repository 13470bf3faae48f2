#include "routing/data/sources/document_files.h"

#include "routing/core/error.h"
#include "routing/core/utf8.h"
#include "routing/data/sources/byte_corpus.h"

#include <algorithm>
#include <string>
#include <utility>

namespace routing {
namespace {

// After the last line end of the first kTextPieceBytes, or after the first one of all, or all.
std::size_t piece_length(std::string_view text) {
  if (text.size() <= kTextPieceBytes) return text.size();
  const std::size_t last = text.rfind('\n', kTextPieceBytes - 1);
  if (last != std::string_view::npos) return last + 1;
  const std::size_t next = text.find('\n', kTextPieceBytes);
  return next == std::string_view::npos ? text.size() : next + 1;
}

class DocumentFiles : public TextSource {
 public:
  DocumentFiles(SourceFacts facts, TextCheck check) : facts_(std::move(facts)), check_(check) {}

  const SourceFacts& facts() const override { return facts_; }

  void read(std::string_view name, const TextSink& sink) const override {
    const SourcePart* const part = facts_.part(name);
    require<ConfigError>(part != nullptr, "the ", facts_.format, " data have no part ", name, ", only ", part_names());
    for (const std::filesystem::path& file : part->files) read_file(file, sink);
  }

 private:
  void read_file(const std::filesystem::path& file, const TextSink& sink) const {
    std::error_code ignored;  // what cannot be opened is reported by ByteCorpus
    if (std::filesystem::file_size(file, ignored) == 0) return read_in_pieces("", file, check_, sink);
    const ByteCorpus corpus(file);
    const auto bytes = corpus.bytes();
    read_in_pieces({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file, check_, sink);
  }

  std::string part_names() const {
    std::string names;
    for (const SourcePart& part : facts_.parts) names += (names.empty() ? "" : ", ") + part.name;
    return names;
  }

  SourceFacts facts_;
  TextCheck check_;
};

}  // namespace

void read_in_pieces(std::string_view text, const std::filesystem::path& path, TextCheck check, const TextSink& sink) {
  std::size_t begin = 0;
  do {
    const std::string_view piece = text.substr(begin, piece_length(text.substr(begin)));
    if (check == TextCheck::utf8) {
      const auto invalid = first_invalid_utf8(piece);
      require<FileError>(!invalid, path.string(), ": byte ", begin + invalid.value_or(0),
                         " is not UTF-8; convert the file, or read it as bytes with data.tokens=bytes");
    }
    begin += piece.size();
    sink(piece, begin == text.size());
  } while (begin < text.size());
}

std::unique_ptr<TextSource> source_of_documents(SourceFacts facts, TextCheck check) {
  return std::make_unique<DocumentFiles>(std::move(facts), check);
}

std::vector<std::filesystem::path> text_files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  std::filesystem::directory_iterator entries(folder, failure);
  require<FileError>(!failure, folder.string(), ": cannot be listed: ", failure.message(), "; check its permissions");
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".txt" && name.front() != '.' && entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void require_folder(const std::filesystem::path& folder, std::string_view expected) {
  std::error_code ignored;
  require<FileError>(std::filesystem::exists(folder, ignored), folder.string(),
                     ": there is no such folder; name the one with ", expected);
  require<FileError>(std::filesystem::is_directory(folder, ignored), folder.string(),
                     ": is not a folder; name the one with ", expected);
}

}  // namespace routing
