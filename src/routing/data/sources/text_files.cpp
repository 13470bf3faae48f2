#include "routing/data/sources/text_files.h"

#include "routing/core/error.h"
#include "routing/data/sources/text_tree.h"

#include <cctype>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

// What people put beside their data.
bool is_about_the_data(const fs::path& file) {
  std::string name = file.stem().string();
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  static const std::set<std::string> names{"readme",  "license", "licence",   "copying",  "notice",  "citation",
                                           "authors", "changes", "changelog", "manifest", "md5sums", "sha256sums"};
  return names.contains(name);
}

std::string counted(std::size_t count, const std::string& thing, const std::string& fate) {
  return std::to_string(count) + " " + thing + (count == 1 ? " is " : "s are ") + fate;
}

// Sorts the texts into parts by their names, or takes all as one.
void sort_into_parts(const TextTree& tree, const fs::path& root, SourceFacts& facts) {
  std::map<std::string, std::vector<fs::path>> named;
  std::vector<fs::path> unnamed;
  std::vector<fs::path> about;
  const fs::path* binding = nullptr;  // a file that leaves no doubt what it is for
  std::size_t only_by_folder = 0;
  for (const fs::path& file : tree.files) {
    const std::string by_file = part_in_file_name(file);
    const std::string part = by_file.empty() ? part_in_folder_name(file, root) : by_file;
    (!part.empty() ? named[part] : is_about_the_data(file) ? about : unnamed).push_back(file);
    if (!by_file.empty() || part == "train") {
      binding = &file;
    } else if (!part.empty()) {
      ++only_by_folder;
    }
  }
  std::vector<std::string> notes;
  if (tree.binary_files > 0) {
    notes.push_back(counted(static_cast<std::size_t>(tree.binary_files), "binary file", "left out"));
  }
  if (!named.empty() && unnamed.empty()) {
    for (const std::string name : {"train", "valid", "test"}) {
      if (named.contains(name)) facts.parts.push_back({.name = name, .files = named[name]});
    }
    if (!about.empty()) notes.push_back(counted(about.size(), "file", "about the data and left out"));
  } else {
    const auto shown = [&](const fs::path& file) { return file.lexically_relative(root).string(); };
    if (binding != nullptr) {
      throw FileError(root.string() + ": has " + shown(*binding) + ", which is a part, and " + shown(unnamed.front()) +
                      ", which is not; " + counted(unnamed.size(), "file", "not named after train, valid or test") +
                      ": move them away, or name the files that you mean with a pattern such as '*.txt'");
    }
    // The tests in a folder of sources.
    if (only_by_folder > 0) {
      notes.push_back(counted(only_by_folder, "file", "in a folder called valid or test and read with the rest"));
    }
    facts.parts = {{.name = "train", .files = tree.files}};
  }
  facts.note = joined(notes);
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

std::unique_ptr<TextSource> open_text(const fs::path& path, TextCheck check) {
  SourceFacts facts{.format = "text", .parts = {}, .missing = ""};
  if (is_pattern(path)) {
    const TextTree tree = texts_matching(path);
    require<FileError>(!tree.files.empty(), path.string(), ": no text has such a name",
                       tree.binary_files > 0 ? ", only binary files" : "",
                       "; * is part of a name, ** any folders, as in 'src/**/*.c'");
    fs::path root = path;
    while (root.string().find_first_of("*?") != std::string::npos) root = root.parent_path();
    sort_into_parts(tree, root, facts);
  } else if (is_folder(path)) {
    const TextTree tree = texts_below(path);
    require<FileError>(!tree.files.empty(), path.string(), ": has no text in it or below, ",
                       tree.binary_files > 0 ? "only binary files" : "no files at all", "; name a folder with texts");
    sort_into_parts(tree, path, facts);
  } else {
    require<FileError>(is_there(path), path.string(),
                       ": there is nothing; name a text file, a folder of texts or a pattern such as 'src/**/*.c'");
    std::error_code ignored;
    require<FileError>(fs::is_regular_file(path, ignored), path.string(),
                       ": is neither a file nor a folder; name a text file or a folder of texts");
    facts.parts = {{.name = "train", .files = {path}}};
  }
  for (const SourcePart& part : facts.parts) require_bytes(part, path);
  return source_of_documents(std::move(facts), check);
}

}  // namespace routing
