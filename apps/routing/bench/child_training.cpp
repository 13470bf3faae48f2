#include "bench/child_training.h"

#include "commands.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/random.h"
#include "shell/process_arguments.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace routing {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "routing-bench-XXXXXX").string();
  require<FileError>(::mkdtemp(name.data()) != nullptr, name, ": cannot be made: ", std::strerror(errno));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

std::string made_up_text() {
  constexpr std::size_t kTextBytes = std::size_t{1} << 21U;
  RandomStream stream(1, "text of bench distributed");
  std::string text;
  while (text.size() < kTextBytes) {
    const std::uint32_t letters = 2 + stream.below(8);
    for (std::uint32_t i = 0; i < letters; ++i) text += static_cast<char>('a' + stream.below(26));
    text += ' ';
  }
  return text;
}

namespace {

std::vector<std::string> training_arguments(const ChildTraining& training) {
  const std::string steps = std::to_string(training.steps);
  std::vector<std::string> arguments{"routing", "train", "--quiet"};
  const auto add = [&](const char* option, const std::string& value) {
    arguments.insert(arguments.end(), {option, value});
  };
  add("--preset", training.preset);
  add("--data", training.data);
  add("--out", training.run.string());
  add("--steps", steps);
  add("--trace", steps);
  add("--ranks", std::to_string(training.ranks));
  add("--threads", std::to_string(training.threads));
  for (const char* setting :
       {"train.log_every=1", "train.eval_every=0", "train.checkpoint_every=0", "train.eval_tokens=1024"}) {
    add("--set", setting);
  }
  for (const std::string& setting : training.settings) add("--set", setting);
  arguments.insert(arguments.end(), training.further.begin(), training.further.end());
  return arguments;
}

std::int64_t run_child(std::vector<std::string> arguments, const fs::path& log) {
  const std::vector<char*> argv = pointers_to(arguments);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, "/proc/self/exe", &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  require<Error>(error == 0, "the program cannot be started: ", std::strerror(error));
  int status = 0;
  rusage used{};
  ::wait4(process, &status, 0, &used);
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == kDone;
  const std::string said = well ? "" : read_file(log);
  require<Error>(well, "a training of the benchmark failed: ", said.substr(0, said.find('\n')));
  return static_cast<std::int64_t>(used.ru_maxrss) * 1024;  // of the process and of those it has waited for
}

}  // namespace

std::int64_t run_training(const ChildTraining& training, const fs::path& log) {
  std::error_code error;
  fs::remove_all(training.run, error);
  return run_child(training_arguments(training), log);
}

}  // namespace routing
