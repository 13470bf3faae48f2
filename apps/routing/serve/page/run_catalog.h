// Which runs are served, and what they are called. Knows no torch; any thread may ask.
//
// A run's id is its path below the served folder, "exp/a". Where the served folder is a run itself, or there are
// several, its last part stands before. What clients ask for is compared with these ids and never becomes part of a
// path.
#pragma once

#include "routing/core/error.h"

#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace routing {

// There is no run or file of this name.
class NotFoundError : public InputError {
 public:
  using InputError::InputError;
};

struct ServedRun {
  std::string id;
  std::filesystem::path folder;
  friend bool operator==(const ServedRun&, const ServedRun&) = default;
};

class RunCatalog {
 public:
  // Folders of runs, or folders below which there are or will be runs. Throws a FileError for one that is not there.
  explicit RunCatalog(const std::vector<std::filesystem::path>& served);

  // Looks again; true if a run has come, gone or been renamed. A served folder that is gone has no runs.
  bool refresh();
  // By id, as the last look saw them.
  std::vector<ServedRun> runs() const;
  // Throws a NotFoundError.
  std::filesystem::path folder_of(const std::string& id) const;
  // For answers: the text of an error without the places of the served folders and without any other absolute path.
  std::string without_paths(const std::string& text) const;

 private:
  struct Served {
    std::filesystem::path folder;
    std::string name;  // that stands before the ids of its runs; empty for none
  };
  std::vector<ServedRun> look() const;

  std::vector<Served> served_;
  mutable std::mutex mutex_;
  std::vector<ServedRun> runs_;
};

// Paths inside of a folder become paths relative to it, the folder itself its last part, and of any other absolute
// path its last part stays: "runs/a/metrics.jsonl: line 3 …" for a folder /home/me/work.
std::string without_paths(const std::string& text, std::span<const std::filesystem::path> folders);

}  // namespace routing
