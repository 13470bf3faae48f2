// Data through pipes: `cat *.txt | routing train --data - …`, `--data <(zcat x.gz)`. They are written to a file first,
// because everything else reads data more than once.
#pragma once

#include "routing/config/experiment.h"

#include <filesystem>
#include <string>

namespace routing {

// Tells ranks where the launcher has put what came through pipes.
inline constexpr const char* kKeptDataVariable = "ROUTING_KEPT_DATA";

// For a training: pipes of data.path become files in the run's folder, data/, so that the run can be resumed and
// evaluated. Without pipes only found_again(). To be called before ranks are started.
//
// Throws  ConfigError  the pipe is named twice, the folder holds a run that is not resumed, or the ranks were started
//                      by somebody else, so that each would have to read it
//         FileError    as keep_pipe()
struct PipedTraining {
  std::filesystem::path run = {};
  bool resumes = false;
  bool is_lone_process = true;  // or starts its ranks itself
};
void keep_piped_data(DataConfig& data, const PipedTraining& training);

// What a run keeps is found again if its folder was moved: paths that are gone become those below the run's folder.
std::string found_again(const std::string& paths, const std::filesystem::path& run);

// Refuses what is not there as a training would, without reading anything. Pipes are left alone.
void check_data(const DataConfig& data);

// For commands that keep nothing: the pipes of a list of paths as files in a temporary folder, which goes with this
// object.
class PassingData {
 public:
  explicit PassingData(const std::string& paths);
  ~PassingData();
  PassingData(const PassingData&) = delete;
  PassingData& operator=(const PassingData&) = delete;

  const std::string& paths() const { return paths_; }
  // For tokens of passing data; `usual` where there are none.
  std::string cache(const std::string& usual) const;

 private:
  std::filesystem::path folder_;  // empty without pipes
  std::string paths_;
};

}  // namespace routing
