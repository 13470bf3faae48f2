// The texts of a folder, to the bottom, and which part each of them is meant for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct TextTree {
  std::vector<std::filesystem::path> files;  // sorted by path
  std::int64_t binary_files = 0;             // left out: they hold a zero byte
  std::int64_t links = 0;                    // left out: to folders, which are not followed, or to nothing
};

// All files below a folder, of whatever extension: but for hidden ones and folders, and binary files. What ends in .gz
// or .dz counts as text. Links to folders are not followed. A FileError if the folder or one below cannot be listed.
TextTree texts_below(const std::filesystem::path& folder);

// The files that a path with * (part of a name), ? (one character) or ** (any folders) stands for, sorted; as
// texts_below() does, hidden ones are left out unless the pattern names them by their dot.
TextTree texts_matching(const std::filesystem::path& pattern);
bool is_pattern(const std::filesystem::path& path);

// train, valid or test, if the name of a file has such a word: "ptb.train.txt", "wiki-test.tokens", "dev.csv"; else
// empty. Names of program sources do not count: train.py and test_sort.c are about training and tests.
std::string part_in_file_name(const std::filesystem::path& file);
// Likewise by the first folder below the root, if that is its whole name: "validation/1.txt".
std::string part_in_folder_name(const std::filesystem::path& file, const std::filesystem::path& root);

}  // namespace routing
