#include "routing/config/text/path_list.h"

#include <algorithm>

namespace routing {
namespace {

std::string with_between(const std::vector<std::string>& paths, const std::string& between) {
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "" : between) + path;
  return text;
}

}  // namespace

std::vector<std::string> paths_in(const std::string& list) {
  std::vector<std::string> paths;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find('\n', begin), list.size());
    if (end > begin) paths.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

std::string path_list(const std::vector<std::string>& paths) {
  return with_between(paths, "\n");
}

std::string shown_paths(const std::string& list) {
  return with_between(paths_in(list), ", ");
}

std::string paths_from(const std::string& list, const std::filesystem::path& folder) {
  std::vector<std::string> paths = paths_in(list);
  for (std::string& path : paths) {
    if (path != kStandardInput) path = (folder / path).string();
  }
  return path_list(paths);
}

}  // namespace routing
