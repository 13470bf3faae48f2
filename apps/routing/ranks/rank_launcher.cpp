#include "ranks/rank_launcher.h"

#include "commands.h"
#include "routing/core/error.h"
#include "routing/distributed/group/tcp_rank_store.h"
#include "routing/distributed/watch/heartbeat.h"
#include "routing/training/rank_log.h"
#include "routing/training/run_directory.h"
#include "shell/interrupts.h"
#include "shell/process_arguments.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <memory>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace routing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollPause{10};
constexpr std::chrono::milliseconds kLongestGoodbye{5000};

// One process and how it ended.
struct Child {
  pid_t process = -1;
  bool running = true;
  int exit_code = 0;
  int signal = 0;
};

std::vector<std::string> environment_of_rank(const LaunchOptions& options, int rank, int port, int attempt) {
  std::vector<std::pair<std::string, std::string>> own{{"RANK", std::to_string(rank)},
                                                       {"LOCAL_RANK", std::to_string(rank)},
                                                       {"WORLD_SIZE", std::to_string(options.ranks)},
                                                       {"LOCAL_WORLD_SIZE", std::to_string(options.ranks)},
                                                       {"MASTER_ADDR", "127.0.0.1"},
                                                       {"MASTER_PORT", std::to_string(port)},
                                                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                       {kAttemptVariable, std::to_string(attempt)},
                                                       {kLaunchedVariable, "1"}};
  std::vector<std::string> list;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::string name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(own.begin(), own.end(), [&](const auto& pair) { return pair.first == name; });
    if (!replaced) list.push_back(text);
  }
  for (auto& [name, value] : own) list.push_back(name.append("=").append(value));
  return list;
}

// What others than the speaker print goes to their logs, if there are any.
Child start_rank(const LaunchOptions& options, int rank, int port, int attempt) {
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = environment_of_rank(options, rank, port, attempt);
  const std::vector<char*> argv = pointers_to(arguments);
  const std::vector<char*> envp = pointers_to(environment);
  int log = -1;
  if (rank != options.speaker) {
    const std::filesystem::path path = options.run.empty() ? "/dev/null" : rank_log_path(options.run, rank);
    log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    require<FileError>(log >= 0, path.string(), ": cannot be written: ", std::strerror(errno));
  }
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  require<Error>(process >= 0, "rank ", rank, " cannot be started: ", std::strerror(errno));
  if (process == 0) {
    // Only calls that are safe after a fork of a program with threads.
    ::setpgid(0, 0);  // signals of the terminal come to us once, through the launcher
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kFailed);
    if (log >= 0) {
      ::dup2(log, STDOUT_FILENO);
      ::dup2(log, STDERR_FILENO);
    }
    ::execve("/proc/self/exe", argv.data(), envp.data());
    ::_exit(kFailed);
  }
  if (log >= 0) ::close(log);
  return {.process = process};
}

// All ranks of one attempt.
class RankFlock {
 public:
  RankFlock(const LaunchOptions& options, TcpRankStore& store, int attempt)
      : options_(options),
        store_(store),
        keys_(keys_of_attempt(attempt)),
        jury_(store, keys_, options.ranks, options.timeout) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      children_.push_back(start_rank(options, rank, store.port(), attempt));
    }
  }
  ~RankFlock() { kill_all(); }
  RankFlock(const RankFlock&) = delete;
  RankFlock& operator=(const RankFlock&) = delete;

  // Why the run ended early; nothing if all ranks ended as they should. A launcher never fails alone: exit_code() is
  // then that of the speaker.
  std::optional<RankFailure> watch();
  int exit_code() const { return exit_code_; }

 private:
  void collect();
  bool any_running() const;
  std::optional<RankFailure> find_dead();
  std::optional<RankFailure> find_stuck();
  void pass_interrupts_on();
  void end_the_rest(const RankFailure& failure);
  void kill_all();

  const LaunchOptions& options_;
  TcpRankStore& store_;
  RankKeys keys_;
  Jury jury_;
  std::vector<Child> children_;
  std::vector<std::optional<Clock::time_point>> ended_;  // when each rank was first known to be at its end
  bool interrupted_ = false;
  int exit_code_ = kDone;
};

void RankFlock::collect() {
  for (Child& child : children_) {
    int status = 0;
    if (!child.running || ::waitpid(child.process, &status, WNOHANG) != child.process) continue;
    child.running = false;
    if (WIFSIGNALED(status)) child.signal = WTERMSIG(status);
    if (WIFEXITED(status)) child.exit_code = WEXITSTATUS(status);
  }
}

bool RankFlock::any_running() const {
  return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.running; });
}

// One that was killed is the cause of all others that failed with it.
std::optional<RankFailure> RankFlock::find_dead() {
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    const Child& child = children_[rank];
    if (child.running || child.signal == 0) continue;
    exit_code_ = kFailed;
    return RankFailure{
        .rank = static_cast<int>(rank),
        .step = jury_.last_step(),
        .reason = "it was killed by signal " + std::to_string(child.signal) + " (" + ::strsignal(child.signal) + ")"};
  }
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    const Child& child = children_[rank];
    if (child.running || child.exit_code == kDone || child.exit_code == kInterrupted) continue;
    exit_code_ = child.exit_code;
    // Ranks judge too: this one may have ended because of another.
    const int ranks = static_cast<int>(children_.size());
    auto failure = failure_in(store_, keys_.verdict(), ranks);
    if (!failure) failure = failure_in(store_, keys_.failed(static_cast<int>(rank)), ranks);
    if (failure) return failure;
    return RankFailure{
        .rank = static_cast<int>(rank),
        .step = jury_.last_step(),
        .reason =
            "it ended with exit code " + std::to_string(child.exit_code) +
            (options_.run.empty() ? "" : "; see " + rank_log_path(options_.run, static_cast<int>(rank)).string())};
  }
  return std::nullopt;
}

// A rank that has said that it ends sends no beats any more; its process must end soon.
std::optional<RankFailure> RankFlock::find_stuck() {
  ended_.resize(children_.size());
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    if (!children_[rank].running) continue;
    const auto beat = beat_from_text(store_.get(keys_.beat(static_cast<int>(rank))).value_or(""));
    if (!beat || beat->phase != RankPhase::ended) continue;
    if (!ended_[rank]) ended_[rank] = Clock::now();
    if (Clock::now() - *ended_[rank] < judge_limits(options_.timeout).silent) continue;
    return RankFailure{.rank = static_cast<int>(rank),
                       .step = jury_.last_step(),
                       .reason = "its work is done, but its process does not end; it hangs or is stopped"};
  }
  return std::nullopt;
}

void RankFlock::pass_interrupts_on() {
  if (interrupted_ || !InterruptGuard::requested()) return;
  interrupted_ = true;
  for (const Child& child : children_) {
    if (child.running) ::kill(child.process, SIGINT);
  }
}

std::optional<RankFailure> RankFlock::watch() {
  const std::chrono::milliseconds period = beat_period(options_.timeout);
  auto next_look = Clock::now() + period;
  std::optional<RankFailure> failure;
  while (true) {
    collect();
    pass_interrupts_on();
    failure = find_dead();
    if (!failure && Clock::now() >= next_look) {
      failure = jury_.look();
      if (!failure) failure = find_stuck();
      if (failure) exit_code_ = kFailed;
      next_look = Clock::now() + period;
    }
    if (failure || !any_running()) break;
    std::this_thread::sleep_for(kPollPause);
  }
  if (!failure) {
    exit_code_ = children_[static_cast<std::size_t>(options_.speaker)].exit_code;
    return std::nullopt;
  }
  end_the_rest(*failure);
  // Their last words may be of a later step than what was known when one was missed.
  failure->step = std::max(failure->step, jury_.last_step());
  // Those that ended in the meantime may know better than an exit code: the rank that failed first has said so.
  for (const Child& child : children_) {
    if (child.exit_code == kWrongUsage) exit_code_ = kWrongUsage;
  }
  return failure;
}

// They read the verdict and end by themselves; a checkpoint that is being written is finished first, if there is time.
void RankFlock::end_the_rest(const RankFailure& failure) {
  if (!store_.get(keys_.verdict())) store_.set(keys_.verdict(), to_record(failure));
  const auto begin = Clock::now();
  const auto goodbye = std::min(kLongestGoodbye, options_.timeout / 8);
  const auto longest = options_.timeout / 4;
  while (true) {
    collect();
    if (!any_running()) return;
    const auto beat = beat_from_text(store_.get(keys_.beat(0)).value_or(""));
    const bool saving = children_.front().running && beat && beat->phase == RankPhase::saving;
    if (Clock::now() - begin >= (saving ? longest : goodbye)) break;
    std::this_thread::sleep_for(kPollPause);
  }
  kill_all();
}

void RankFlock::kill_all() {
  for (Child& child : children_) {
    if (!child.running) continue;
    ::kill(child.process, SIGKILL);
    ::waitpid(child.process, nullptr, 0);
    child.running = false;
    child.signal = SIGKILL;
  }
}

void make_log_folder(const std::filesystem::path& run) {
  const std::filesystem::path folder = rank_log_path(run, 0).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require<FileError>(!error, folder.string(), ": cannot be made: ", error.message(),
                     "; choose an --out that can be written");
}

}  // namespace

std::string failure_line(const RankFailure& failure, const std::filesystem::path& run) {
  if (run.empty()) {
    return (failure.rank < 0 ? "the ranks failed: " : "rank " + std::to_string(failure.rank) + " failed: ") +
           failure.reason + "; start all of them again";
  }
  const auto newest = RunDirectory(run).newest_checkpoint();
  return failure.text() +
         (newest ? "; the checkpoint of step " + std::to_string(newest->step) + " is whole, go on with --resume"
                 : "; start again with --resume");
}

int launch_ranks(const LaunchOptions& options) {
  if (!options.run.empty()) make_log_folder(options.run);
  const InterruptGuard interrupts;
  TcpRankStore store({.host = "127.0.0.1", .port = 0}, TcpRankStore::Role::keep, options.timeout);
  for (int attempt = 0;; ++attempt) {
    std::optional<RankFailure> failure;
    int exit_code = kDone;
    {
      RankFlock flock(options, store, attempt);
      failure = flock.watch();
      exit_code = flock.exit_code();
    }
    if (!failure) return exit_code;
    if (exit_code == kWrongUsage) {
      std::cerr << "routing: error: " << (failure->rank == 0 ? "" : "rank " + std::to_string(failure->rank) + ": ")
                << failure->reason << "\n";
      return exit_code;
    }
    // Nothing is kept of what was interrupted.
    if (options.run.empty() && InterruptGuard::requested()) return kInterrupted;
    // A rank that was lost before it had read the checkpoint knew of no step.
    const auto newest = options.run.empty() ? std::nullopt : RunDirectory(options.run).newest_checkpoint();
    if (newest) failure->step = std::max(failure->step, newest->step);
    const bool again = attempt < options.restarts && !InterruptGuard::requested();
    std::cerr << "routing: " << (again ? "" : "error: ") << failure_line(*failure, options.run) << "\n";
    if (!again) return kFailed;
    if (!options.quiet) {
      std::cerr << "routing: starting " << options.ranks << " ranks again, restart " << attempt + 1 << " of "
                << options.restarts << "\n";
    }
  }
}

}  // namespace routing
