#include "routing/data/sources/text_files.h"

#include "routing/core/error.h"

#include <string>
#include <utility>

namespace routing {
namespace {

bool is_named_after_a_part(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  return stem == "train" || stem == "valid" || stem == "test";
}

std::vector<SourcePart> parts_of_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files = text_files_in(folder);
  require<FileError>(!files.empty(), folder.string(),
                     ": has no .txt file; put texts into it that end in .txt, or name a single file");
  const std::filesystem::path* named = nullptr;
  const std::filesystem::path* other = nullptr;
  for (const std::filesystem::path& file : files) (is_named_after_a_part(file) ? named : other) = &file;
  if (named == nullptr) return {{.name = "train", .files = std::move(files)}};
  require<FileError>(other == nullptr, folder.string(), ": has ", named->filename().string(), ", which is a part, and ",
                     other == nullptr ? "" : other->filename().string(),
                     ", which is not; keep either train.txt, valid.txt and test.txt or other files");
  std::vector<SourcePart> parts;
  for (const std::string name : {"train", "valid", "test"}) {
    const std::filesystem::path file = folder / (name + ".txt");
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) parts.push_back({.name = name, .files = {file}});
  }
  return parts;
}

void require_bytes(const SourcePart& part, const std::filesystem::path& path) {
  std::error_code ignored;
  for (const std::filesystem::path& file : part.files) {
    if (std::filesystem::file_size(file, ignored) > 0) return;
  }
  throw FileError((part.files.size() == 1 ? part.files.front() : path).string() +
                  ": has 0 bytes; name a text with something in it");
}

}  // namespace

std::unique_ptr<TextSource> open_text(const std::filesystem::path& path, TextCheck check) {
  std::error_code ignored;
  require<FileError>(std::filesystem::exists(path, ignored), path.string(),
                     ": there is nothing; name a text file or a folder of .txt files");
  SourceFacts facts{.format = "text", .parts = {}, .missing = ""};
  if (std::filesystem::is_directory(path, ignored)) {
    facts.parts = parts_of_folder(path);
  } else {
    require<FileError>(std::filesystem::is_regular_file(path, ignored), path.string(),
                       ": is neither a file nor a folder; name a text file or a folder of .txt files");
    facts.parts = {{.name = "train", .files = {path}}};
  }
  for (const SourcePart& part : facts.parts) require_bytes(part, path);
  return source_of_documents(std::move(facts), check);
}

}  // namespace routing
