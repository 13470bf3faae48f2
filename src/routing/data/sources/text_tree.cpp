#include "routing/data/sources/text_tree.h"

#include "routing/core/error.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fnmatch.h>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

bool is_compressed(const fs::path& path) {
  return path.extension() == ".gz" || path.extension() == ".dz";
}

// As grep does it: a text has no zero byte.
bool is_binary(const fs::path& path) {
  if (is_compressed(path)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 8192> start{};
  file.read(start.data(), start.size());
  return std::find(start.begin(), start.begin() + file.gcount(), '\0') != start.begin() + file.gcount();
}

void add_file(const fs::path& file, TextTree& tree) {
  if (is_binary(file)) {
    ++tree.binary_files;
  } else {
    tree.files.push_back(file);
  }
}

// Visits every file that is not hidden, with all folders on the way. Returns how many links lead to no file.
template <class Visit>
std::int64_t for_each_file(const fs::path& folder, const Visit& visit) {
  std::int64_t links = 0;
  std::error_code failure;
  fs::recursive_directory_iterator entries(folder, failure);
  require<FileError>(!failure, folder.string(), ": cannot be listed: ", failure.message(), "; check its permissions");
  while (entries != fs::recursive_directory_iterator()) {
    const fs::path last = entries->path();
    if (is_hidden(last)) {
      entries.disable_recursion_pending();
    } else if (entries->is_regular_file(failure)) {
      visit(last);
    } else if (entries->is_symlink(failure)) {
      ++links;
    }
    entries.increment(failure);
    require<FileError>(!failure, last.string(), ": cannot be listed: ", failure.message(), "; check its permissions");
  }
  return links;
}

// Do the names of a path, from here on, fit those of a pattern? ** stands for any number of folders.
bool fits(fs::path::iterator name, fs::path::iterator name_end, fs::path::iterator part, fs::path::iterator part_end) {
  if (part == part_end) return name == name_end;
  if (*part == "**") {
    for (auto rest = name;; ++rest) {
      if (fits(rest, name_end, std::next(part), part_end)) return true;
      if (rest == name_end) return false;
    }
  }
  if (name == name_end) return false;
  if (::fnmatch(part->c_str(), name->c_str(), FNM_PERIOD) != 0) return false;
  return fits(std::next(name), name_end, std::next(part), part_end);
}

std::string in_lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

// The words of a name: "ptb.train-01.txt" has ptb, train, 01 and txt.
std::set<std::string> words_of(const std::string& name) {
  std::set<std::string> words;
  std::string word;
  for (const char letter : in_lower_case(name) + ".") {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      word += letter;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, ""));
    }
  }
  return words;
}

std::string part_of_words(const std::set<std::string>& words) {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> names{
      {"train", {"train", "training"}},
      {"valid", {"valid", "validation", "val", "dev", "devel"}},
      {"test", {"test", "testing", "heldout"}}};
  std::string found;
  for (const auto& [part, called] : names) {
    const bool named =
        std::any_of(called.begin(), called.end(), [&](const auto& name) { return words.contains(name); });
    // Two of them, as in "train-test.txt", say nothing.
    if (named && !found.empty()) return "";
    if (named) found = part;
  }
  return found;
}

bool is_program_source(const fs::path& file) {
  static const std::set<std::string> endings{
      ".asm",   ".bash", ".c",   ".cc",  ".cmake", ".cpp", ".cs",    ".css",  ".cu", ".cxx", ".f90",
      ".go",    ".h",    ".hh",  ".hpp", ".hs",    ".inl", ".ipynb", ".java", ".jl", ".js",  ".kt",
      ".lua",   ".m",    ".mk",  ".ml",  ".php",   ".pl",  ".pm",    ".py",   ".r",  ".rb",  ".rs",
      ".scala", ".sh",   ".sql", ".s",   ".swift", ".tcl", ".ts",    ".tsx",  ".v",  ".vhd", ".zig"};
  const fs::path name = is_compressed(file) ? file.stem() : file.filename();
  return endings.contains(in_lower_case(name.extension().string()));
}

}  // namespace

TextTree texts_below(const fs::path& folder) {
  TextTree tree;
  tree.links = for_each_file(folder, [&](const fs::path& file) { add_file(file, tree); });
  std::sort(tree.files.begin(), tree.files.end());
  return tree;
}

bool is_pattern(const fs::path& path) {
  std::error_code ignored;
  return path.string().find_first_of("*?") != std::string::npos && !fs::exists(path, ignored);
}

TextTree texts_matching(const fs::path& pattern) {
  // The folders up to the first name with a star are where to begin.
  fs::path root;
  for (const fs::path& name : pattern) {
    if (name.string().find_first_of("*?") != std::string::npos) break;
    root /= name;
  }
  TextTree tree;
  const fs::path begin = root.empty() ? fs::path(".") : root;
  std::error_code ignored;
  if (!fs::is_directory(begin, ignored)) return tree;
  for_each_file(begin, [&](const fs::path& file) {
    const fs::path path = root.empty() ? file.lexically_relative(".") : file;
    if (fits(path.begin(), path.end(), pattern.begin(), pattern.end())) add_file(path, tree);
  });
  std::sort(tree.files.begin(), tree.files.end());
  return tree;
}

std::string part_in_file_name(const fs::path& file) {
  return is_program_source(file) ? "" : part_of_words(words_of(file.filename().string()));
}

std::string part_in_folder_name(const fs::path& file, const fs::path& root) {
  const fs::path below = file.lexically_relative(root);
  if (std::distance(below.begin(), below.end()) < 2) return "";
  const std::set<std::string> words = words_of(below.begin()->string());
  return words.size() == 1 ? part_of_words(words) : "";
}

}  // namespace routing
