#include "routing/data/sources/source.h"

#include "routing/config/text/path_list.h"
#include "routing/core/error.h"

#include <system_error>

namespace routing {

const SourcePart* SourceFacts::part(std::string_view name) const {
  for (const SourcePart& candidate : parts) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

const SourcePart& require_part(const SourceFacts& facts, std::string_view name) {
  const SourcePart* const part = facts.part(name);
  if (part != nullptr) return *part;
  std::vector<std::string> names;
  for (const SourcePart& there : facts.parts) names.push_back(there.name);
  throw InputError("the part \"" + std::string(name) + "\" is not in these " + facts.format + " data, which have " +
                   joined(names) + "; ask for one of those");
}

bool is_there(const std::filesystem::path& path) {
  std::error_code failure;
  return std::filesystem::exists(path, failure);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code failure;
  return std::filesystem::is_directory(path, failure);
}

bool is_standard_input(const std::filesystem::path& path) {
  return path == kStandardInput || path == "/dev/stdin" || path == "/dev/fd/0" || path == "/proc/self/fd/0";
}

bool is_pipe(const std::filesystem::path& path) {
  std::error_code failure;
  return is_standard_input(path) || std::filesystem::is_fifo(path, failure);
}

std::string joined(const std::vector<std::string>& things) {
  std::string list;
  for (const std::string& thing : things) {
    if (thing.empty()) continue;
    if (!list.empty()) list += ", ";
    list += thing;
  }
  return list;
}

}  // namespace routing
