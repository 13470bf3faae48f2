// Trainings that a benchmark starts: the program itself, as a user would call it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

// Gone with everything in it when it goes out of sight.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Two megabytes of words of few letters: speed does not depend on what they say.
std::string made_up_text();

struct ChildTraining {
  std::string preset, data;
  std::filesystem::path run;  // emptied before
  std::int64_t steps = 0;     // all of them traced
  int ranks = 1;
  int threads = 1;                         // of each rank
  std::vector<std::string> settings = {};  // KEY=VALUE
  std::vector<std::string> further = {};   // options of `routing train`
};
// Empties the folder and runs `routing train` until it ends, with a log of every step and neither evaluations nor
// checkpoints on the way; what it says goes to `log`. Returns the most memory in bytes that the largest of its
// processes had, ranks included. Throws an Error with its first line if it failed.
std::int64_t run_training(const ChildTraining& training, const std::filesystem::path& log);

}  // namespace routing
