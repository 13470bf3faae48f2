#include "serve/page/run_catalog.h"

#include "lab/runs/run_summary.h"
#include "routing/core/utf8.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

// Without "." and "..", and without a slash at its end.
fs::path tidy(const fs::path& folder) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(folder, error);
  if (error) path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

std::string last_part(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.empty() ? "runs" : name;
}

// Ids go into JSON and addresses, where other bytes have no place.
std::string as_utf8(std::string_view text) {
  std::string valid;
  while (const std::optional<std::size_t> wrong = first_invalid_utf8(text)) {
    valid += std::string(text.substr(0, *wrong)) + "\uFFFD";
    text.remove_prefix(*wrong + 1);
  }
  return valid + std::string(text);
}

bool begins_a_path(char before) {
  constexpr std::string_view kBefore = " \t\n\"'`(<[{=,;:";
  return kBefore.find(before) != std::string_view::npos;
}

bool ends_a_path(char letter) {
  constexpr std::string_view kBehind = " \t\n\"'`)>]},;:";
  return kBehind.find(letter) != std::string_view::npos;
}

// Is the end of this folder's name here, not the beginning of a longer one?
bool is_whole_name(std::string_view text, std::size_t end) {
  return end == text.size() || text[end] == '/' || ends_a_path(text[end]);
}

void replace_folder(std::string& text, const std::string& folder) {
  if (folder.size() < 2) return;
  const std::string name = last_part(folder);
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
    const std::size_t end = at + folder.size();
    if (!is_whole_name(text, end) || (at > 0 && !begins_a_path(text[at - 1]))) {
      at = end;
      continue;
    }
    const bool has_more = end + 1 < text.size() && text[end] == '/' && !ends_a_path(text[end + 1]);
    text.replace(at, has_more ? folder.size() + 1 : folder.size(), has_more ? "" : name);
  }
}

void shorten_absolute_paths(std::string& text) {
  for (std::size_t at = text.find('/'); at != std::string::npos; at = text.find('/', at + 1)) {
    const bool begins = at == 0 || begins_a_path(text[at - 1]);
    if (!begins || at + 1 == text.size() || ends_a_path(text[at + 1]) || text[at + 1] == '/') continue;
    std::size_t end = at;
    while (end < text.size() && !ends_a_path(text[end])) ++end;
    std::string path = text.substr(at, end - at);
    while (path.back() == '/') path.pop_back();
    const std::string name = path.substr(path.rfind('/') + 1);
    text.replace(at, end - at, name);
    at += name.size();
    if (at >= text.size()) return;
  }
}

}  // namespace

std::string without_paths(const std::string& text, std::span<const fs::path> folders) {
  std::string shown = text;
  // The longest first: one may lie in another.
  std::vector<std::string> names;
  for (const fs::path& folder : folders) names.push_back(folder.string());
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::string& name : names) replace_folder(shown, name);
  shorten_absolute_paths(shown);
  return shown;
}

RunCatalog::RunCatalog(const std::vector<fs::path>& served) {
  for (const fs::path& folder : served) {
    std::error_code ignored;
    require<FileError>(fs::is_directory(folder, ignored), folder.string(),
                       ": is not a folder; give a run, or a folder below which there are runs");
    const fs::path place = tidy(folder);
    const auto same = [&](const Served& other) { return other.folder == place; };
    if (std::none_of(served_.begin(), served_.end(), same)) served_.push_back({.folder = place, .name = ""});
  }
  std::set<std::string> taken;
  for (Served& each : served_) {
    if (served_.size() == 1) break;
    const std::string name = last_part(each.folder);
    each.name = name;
    // For as long as the server runs, whatever becomes of the others.
    for (int number = 2; !taken.insert(each.name).second; ++number) each.name = name + "-" + std::to_string(number);
  }
  refresh();
}

std::vector<ServedRun> RunCatalog::look() const {
  std::vector<ServedRun> runs;
  std::set<std::string> taken;
  for (const Served& served : served_) {
    std::vector<fs::path> found;
    try {
      found = find_runs(served.folder);
    } catch (const FileError&) {
      continue;  // Gone for the moment.
    }
    for (const fs::path& run : found) {
      std::string id = served.name.empty() ? last_part(run) : served.name;
      if (run != served.folder) {
        id = (served.name.empty() ? "" : served.name + "/") + run.lexically_relative(served.folder).string();
      }
      id = as_utf8(id);
      std::string unique = id;
      for (int number = 2; !taken.insert(unique).second; ++number) unique = id + "-" + std::to_string(number);
      runs.push_back({.id = unique, .folder = run});
    }
  }
  std::sort(runs.begin(), runs.end(), [](const ServedRun& a, const ServedRun& b) { return a.id < b.id; });
  return runs;
}

bool RunCatalog::refresh() {
  std::vector<ServedRun> found = look();
  const std::lock_guard lock(mutex_);
  if (found == runs_) return false;
  runs_ = std::move(found);
  return true;
}

std::vector<ServedRun> RunCatalog::runs() const {
  const std::lock_guard lock(mutex_);
  return runs_;
}

fs::path RunCatalog::folder_of(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const ServedRun& run) { return run.id == id; });
  require<NotFoundError>(found != runs_.end(), "there is no run '", id, "'; GET /api/runs lists those that are there");
  return found->folder;
}

std::string RunCatalog::without_paths(const std::string& text) const {
  std::vector<fs::path> folders;
  for (const Served& served : served_) folders.push_back(served.folder);
  return routing::without_paths(text, folders);
}

}  // namespace routing
