#include "inputs/piped_data.h"

#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "routing/data/dataset.h"
#include "routing/data/sources/piped_text.h"
#include "routing/data/sources/source.h"
#include "routing/data/sources/text_tree.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <unistd.h>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

fs::path kept_data_folder(const fs::path& run) {
  return run / "data";
}

bool has_pipe(const std::string& paths) {
  const std::vector<std::string> all = paths_in(paths);
  return std::any_of(all.begin(), all.end(), [](const std::string& path) { return is_pipe(path); });
}

std::string with_pipes_kept(const std::string& paths, const fs::path& folder) {
  std::vector<std::string> all = paths_in(paths);
  std::set<std::string> seen;
  for (const std::string& path : all) {
    require<ConfigError>(!is_pipe(path) || seen.insert(pipe_name(path)).second, pipe_name(path),
                         ": is named twice, but a pipe can be read once; name it once");
  }
  for (std::string& path : all) {
    if (is_pipe(path)) path = fs::absolute(keep_pipe(path, folder)).lexically_normal().string();
  }
  return path_list(all);
}

}  // namespace

void keep_piped_data(DataConfig& data, const PipedTraining& training) {
  data.path = found_again(data.path, training.run);
  if (!has_pipe(data.path)) return;
  if (const char* const kept = std::getenv(kKeptDataVariable); kept != nullptr) {
    data.path = kept;
    return;
  }
  require<ConfigError>(training.is_lone_process, shown_paths(data.path),
                       ": is a pipe, which only one of several ranks could read; write it to a file and name that, or "
                       "start the ranks with --ranks N");
  std::error_code ignored;
  require<ConfigError>(training.resumes || !fs::exists(training.run / "config.toml", ignored), training.run.string(),
                       ": holds a run already; go on with it by `resume`, or choose another `run`");
  data.path = with_pipes_kept(data.path, kept_data_folder(training.run));
  ::setenv(kKeptDataVariable, data.path.c_str(), 1);
}

std::string found_again(const std::string& paths, const fs::path& run) {
  std::vector<std::string> all = paths_in(paths);
  for (std::string& path : all) {
    const fs::path kept = kept_data_folder(run) / fs::path(path).filename();
    if (!is_pipe(path) && !is_there(path) && is_there(kept)) path = fs::absolute(kept).lexically_normal().string();
  }
  return path_list(all);
}

void check_data(const DataConfig& data) {
  if (!has_pipe(data.path)) return require_data(data);
  for (const std::string& path : paths_in(data.path)) {
    require<FileError>(is_pipe(path) || is_pattern(path) || is_there(path), path, ": is not there; check the name");
  }
}

PassingData::PassingData(const std::string& paths) : paths_(paths) {
  if (!has_pipe(paths)) return;
  std::string name = (fs::temp_directory_path() / "routing-XXXXXX").string();
  require<FileError>(::mkdtemp(name.data()) != nullptr, name, ": cannot be made: ", std::strerror(errno),
                     "; set TMPDIR to a folder that can be written");
  folder_ = name;
  try {
    paths_ = with_pipes_kept(paths, folder_);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

PassingData::~PassingData() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

std::string PassingData::cache(const std::string& usual) const {
  return folder_.empty() ? usual : (folder_ / "cache").string();
}

}  // namespace routing
