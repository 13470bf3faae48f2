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

// What one path stands for.
struct Place {
  fs::path root;  // names are seen from here
  TextTree tree;
};

struct NamedText {
  fs::path file;
  fs::path shown;        // as seen from its root
  std::string part;      // train, valid, test or empty
  bool binding = false;  // leaves no doubt what it is for
};

NamedText named_text(const fs::path& file, const fs::path& root, bool of_several) {
  const std::string by_file = part_in_file_name(file);
  std::string part = by_file;
  // Of several, what was named itself: train/ beside test/.
  if (part.empty() && of_several) part = part_in_folder_name(root / "file", root.parent_path());
  if (part.empty()) part = part_in_folder_name(file, root);
  return {.file = file,
          .shown = of_several ? file : file.lexically_relative(root),
          .part = part,
          .binding = !by_file.empty() || part == "train"};
}

std::vector<NamedText> named_texts(const std::vector<Place>& places) {
  std::vector<NamedText> texts;
  std::set<fs::path> seen;
  for (const Place& place : places) {
    for (const fs::path& file : place.tree.files) {
      require<FileError>(places.size() == 1 || seen.insert(fs::absolute(file).lexically_normal()).second, file.string(),
                         ": is named twice, so that it could be learned from and held out; leave one of them out");
      texts.push_back(named_text(file, place.root, places.size() > 1));
    }
  }
  return texts;
}

// Sorts the texts into parts by their names, or takes all as one. `name` is what an error begins with.
void sort_into_parts(const std::vector<Place>& places, const std::string& name, SourceFacts& facts) {
  std::map<std::string, std::vector<fs::path>> named;
  std::vector<NamedText> unnamed;
  std::size_t about = 0;
  std::size_t only_by_folder = 0;
  std::vector<fs::path> all;
  const std::vector<NamedText> texts = named_texts(places);
  const NamedText* binding = nullptr;
  for (const NamedText& text : texts) {
    all.push_back(text.file);
    if (text.binding) binding = &text;
    if (!text.part.empty()) {
      named[text.part].push_back(text.file);
      if (!text.binding) ++only_by_folder;
    } else if (is_about_the_data(text.file)) {
      ++about;
    } else {
      unnamed.push_back(text);
    }
  }
  std::vector<std::string> notes;
  std::int64_t binary_files = 0;
  std::int64_t links = 0;
  for (const Place& place : places) {
    binary_files += place.tree.binary_files;
    links += place.tree.links;
  }
  if (links > 0)
    notes.push_back(counted(static_cast<std::size_t>(links), "link to a folder or to nothing", "left out"));
  if (binary_files > 0) notes.push_back(counted(static_cast<std::size_t>(binary_files), "binary file", "left out"));
  if (!named.empty() && unnamed.empty()) {
    for (const std::string part : {"train", "valid", "test"}) {
      if (named.contains(part)) facts.parts.push_back({.name = part, .files = named[part]});
    }
    if (about > 0) notes.push_back(counted(about, "file", "about the data and left out"));
  } else {
    if (binding != nullptr) {
      throw FileError(name + ": has " + binding->shown.string() + ", which is a part, and " +
                      unnamed.front().shown.string() + ", which is not; " +
                      counted(unnamed.size(), "file", "not named after train, valid or test") +
                      ": move them away, or name the files that you mean with a pattern such as '*.txt'");
    }
    // The tests in a folder of sources.
    if (only_by_folder > 0) {
      notes.push_back(counted(only_by_folder, "file", "in a folder called valid or test and read with the rest"));
    }
    facts.parts = {{.name = "train", .files = all}};
  }
  facts.note = joined(notes);
}

void require_bytes(const SourcePart& part, const std::string& name) {
  std::error_code ignored;
  for (const std::filesystem::path& file : part.files) {
    if (std::filesystem::file_size(file, ignored) > 0) return;
  }
  throw FileError((part.files.size() == 1 ? part.files.front().string() : name) +
                  ": has 0 bytes; name a text with something in it");
}

Place place_of(const fs::path& path) {
  if (is_pattern(path)) {
    TextTree tree = texts_matching(path);
    require<FileError>(!tree.files.empty(), path.string(), ": no text has such a name",
                       tree.binary_files > 0 ? ", only binary files" : "",
                       "; * is part of a name, ** any folders, as in 'src/**/*.c'");
    fs::path root = path;
    while (root.string().find_first_of("*?") != std::string::npos) root = root.parent_path();
    return {root, std::move(tree)};
  }
  if (is_folder(path)) {
    TextTree tree = texts_below(path);
    require<FileError>(!tree.files.empty(), path.string(), ": has no text in it or below, ",
                       tree.binary_files > 0 ? "only binary files" : "no files at all", "; name a folder with texts");
    return {path.has_filename() ? path : path.parent_path(), std::move(tree)};
  }
  require<FileError>(is_there(path), path.string(),
                     ": there is nothing; name a text file, a folder of texts or a pattern such as 'src/**/*.c'");
  std::error_code ignored;
  require<FileError>(fs::is_regular_file(path, ignored), path.string(),
                     ": is neither a file nor a folder; name a text file or a folder of texts");
  return {path.parent_path(), {.files = {path}}};
}

}  // namespace

std::unique_ptr<TextSource> open_text(const fs::path& path, TextCheck check) {
  return open_texts({path}, check);
}

std::unique_ptr<TextSource> open_texts(const std::vector<fs::path>& paths, TextCheck check) {
  require<FileError>(!paths.empty(), "no text is named; name a file, a folder of texts or a pattern");
  SourceFacts facts{.format = "text", .parts = {}, .missing = ""};
  std::vector<Place> places;
  std::string name;
  for (const fs::path& path : paths) {
    places.push_back(place_of(path));
    name += (name.empty() ? "" : ", ") + path.string();
  }
  // A file alone is what it is, whatever its name.
  const bool one_file = paths.size() == 1 && !is_pattern(paths.front()) && !is_folder(paths.front());
  if (one_file) {
    facts.parts = {{.name = "train", .files = paths}};
  } else {
    sort_into_parts(places, name, facts);
  }
  for (const SourcePart& part : facts.parts) require_bytes(part, name);
  return source_of_documents(std::move(facts), check);
}

}  // namespace routing
