// Several paths as the value of one key, data.path: a line of text for each, in the order in which they are read. One
// path alone is its own list, so that what was written before there were several still means the same.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace routing {

// Standard input, where a path is asked for. A file of that name is "./-".
inline constexpr const char* kStandardInput = "-";

std::vector<std::string> paths_in(const std::string& list);  // none of an empty text
std::string path_list(const std::vector<std::string>& paths);
// For people, on one line: "a.txt, b".
std::string shown_paths(const std::string& list);

// Relative paths as seen from the folder; an empty one and standard input stay what they are.
std::string paths_from(const std::string& list, const std::filesystem::path& folder);

}  // namespace routing
