#include "help/run_paths.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 3;
constexpr int kMostFolders = 4000;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// A config.toml alone is a file of many other programs.
bool is_run(const fs::path& folder) {
  if (is_there(folder / "model.safetensors")) return true;
  if (!is_there(folder / "config.toml")) return false;
  return is_there(folder / "lock") || is_there(folder / "metrics.jsonl") || is_there(folder / "checkpoints");
}

bool is_hidden(const fs::path& name) {
  return name.string().starts_with(".");
}

// Entries of a folder; none if it may not be read.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code failure;
  fs::directory_iterator next(folder, fs::directory_options::skip_permission_denied, failure);
  for (; !failure && next != fs::directory_iterator(); next.increment(failure)) entries.push_back(*next);
  return entries;
}

// `left` is how many folders may still be looked at.
bool has_runs_below(const fs::path& folder, int depth, int& left) {
  for (const fs::directory_entry& entry : entries_of(folder)) {
    std::error_code ignored;
    if (is_hidden(entry.path().filename()) || !entry.is_directory(ignored) || entry.is_symlink(ignored)) continue;
    if (left-- <= 0) return false;
    if (is_run(entry.path()) || (depth > 1 && has_runs_below(entry.path(), depth - 1, left))) return true;
  }
  return false;
}

fs::path with_home(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return home != nullptr && path.starts_with("~/") ? fs::path(home) / path.substr(2) : fs::path(path);
}

}  // namespace

std::vector<std::string> run_paths(const std::string& typed) {
  const std::size_t start = typed.rfind('/') + 1;
  const std::string before = typed.substr(0, start);
  const std::string beginning = typed.substr(start);
  int left = kMostFolders;
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : entries_of(before.empty() ? fs::path(".") : with_home(before))) {
    const std::string name = entry.path().filename().string();
    const bool wanted = name.starts_with(beginning) && (!is_hidden(name) || is_hidden(beginning)) &&
                        name.find_first_of("\n\t") == std::string::npos;
    if (!wanted) continue;
    std::error_code ignored;
    if (!entry.is_directory(ignored)) {
      if (entry.path().extension() == ".safetensors") found.push_back(before + name);
    } else if (is_run(entry.path())) {
      found.push_back(before + name);
    } else if (has_runs_below(entry.path(), kDepth, left)) {
      found.push_back(before + name + "/");
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace routing
