// What one rank of several did, in words: <run>/ranks/rank-0003.log. Kept on every rank, also where its machine does
// not share the run's folder.
#pragma once

#include "routing/core/files.h"

#include <filesystem>
#include <memory>
#include <string>

namespace routing {

std::filesystem::path rank_log_path(const std::filesystem::path& run, int rank);

class RankLog {
 public:
  // Goes on at the end of the file. Throws a FileError if it cannot be made.
  RankLog(const std::filesystem::path& run, int rank);
  // One line behind the time.
  void write(const std::string& text);

 private:
  std::unique_ptr<AppendFile> file_;
};

}  // namespace routing
