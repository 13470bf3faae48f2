#include "routing/training/rank_log.h"

#include "routing/core/clock.h"
#include "routing/core/error.h"

#include <system_error>

namespace routing {

std::filesystem::path rank_log_path(const std::filesystem::path& run, int rank) {
  const std::string number = std::to_string(rank);
  const std::string zeros(number.size() < 4 ? 4 - number.size() : 0, '0');
  return run / "ranks" / ("rank-" + zeros + number + ".log");
}

RankLog::RankLog(const std::filesystem::path& run, int rank) {
  const std::filesystem::path path = rank_log_path(run, rank);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  require<FileError>(!error, path.parent_path().string(), ": cannot be made: ", error.message(),
                     "; choose a `run` that can be written");
  file_ = std::make_unique<AppendFile>(path);
}

void RankLog::write(const std::string& text) {
  file_->write(utc_now() + " " + text + "\n");
}

}  // namespace routing
