#include "ranks/rank_process.h"

#include "commands.h"
#include "ranks/rank_launcher.h"
#include "routing/core/error.h"
#include "routing/distributed/group/rendezvous.h"
#include "routing/training/rank_log.h"
#include "shell/option_names.h"
#include "shell/process_arguments.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <linux/close_range.h>
#include <optional>
#include <thread>
#include <unistd.h>

namespace routing {
namespace {

using Clock = std::chrono::steady_clock;

// In the log of this rank, whatever else goes wrong.
void note(const std::filesystem::path& run, int rank, const std::string& text) {
  if (run.empty()) return;
  try {
    RankLog(run, rank).write(text);
  } catch (const std::exception&) {
    // There is nobody left to tell.
  }
}

// The same program from its start, without the files and connections of this one.
[[noreturn]] void start_anew(const RankPlace& place, const RankProcessOptions& options) {
  ::setenv(kAttemptVariable, std::to_string(place.attempt + 1).c_str(), 1);
  std::vector<std::string> arguments = options.arguments;
  const std::vector<char*> argv = pointers_to(arguments);
  // At the moment of the exec: other threads still look at them.
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execve("/proc/self/exe", argv.data(), environ);
  ::_exit(kFailed);
}

// This process, for threads that have to end it.
struct Running {
  RankPlace place = {};
  RankProcessOptions options = {};
  int rank = 0;  // as it is counted in this attempt
  std::shared_ptr<RankStatus> status = nullptr;
  std::optional<int> exit_code = std::nullopt;  // once its work is done
};

// The end of this process after a failure of the run; only the first call counts.
[[noreturn]] void end_process(const Running& self, const RankFailure& failure, int exit_code) {
  static std::atomic<bool> ending{false};
  while (ending.exchange(true)) std::this_thread::sleep_for(std::chrono::hours(1));
  const bool wrong_usage = exit_code == kWrongUsage;
  note(self.options.run, self.rank, "ended: " + (wrong_usage ? failure.reason : failure.text()));
  const bool again = exit_code == kFailed && self.place.attempt < self.options.restarts && !is_launched();
  if (!is_launched()) {
    const bool own = failure.rank == self.rank || wrong_usage;
    std::cerr << "routing: " << (again ? "" : "error: ") << (own ? "" : "rank " + std::to_string(self.rank) + " ends: ")
              << (wrong_usage ? failure.reason : failure_line(failure, self.options.run)) << "\n";
    if (again)
      std::cerr << "routing: rank " << self.rank << " starts again, restart " << self.place.attempt + 1 << "\n";
  }
  if (again) start_anew(self.place, self.options);
  ::_exit(exit_code);
}

// A terminate handler gets no arguments. Never taken back: threads of c10d may outlive the work.
Running* running = nullptr;

// A thread of c10d 1.13 that listens to the store throws when its connection is reset, and nobody can catch it there.
[[noreturn]] void on_terminate() {
  std::string reason = "the program was terminated";
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "something that is not an exception was thrown";
  }
  // Whoever keeps the store may leave before us.
  if (running->exit_code) ::_exit(*running->exit_code);
  const std::string address = running->place.master_address + ":" + std::to_string(running->place.master_port);
  end_process(
      *running,
      {.rank = running->rank,
       .step = running->status->step(),
       .reason = "its connection to the store at " + address + " broke: " + reason.substr(0, reason.find('\n'))},
      kFailed);
}

}  // namespace

int run_as_rank(const RankPlace& place, const RankProcessOptions& options,
                const std::function<int(const std::shared_ptr<RankGroup>&, int local_rank)>& work) {
  // A connection that breaks is an error of the call, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  // As long-lived as the process: see on_terminate().
  static Running self;
  self = {.place = place, .options = options, .rank = place.rank, .status = std::make_shared<RankStatus>()};
  running = &self;
  std::set_terminate(on_terminate);
  const auto lost = [&](const RankFailure& failure) {
    // A checkpoint that is being written is worth a moment.
    const auto deadline = Clock::now() + options.timeout / 8;
    while (self.status->phase() == RankPhase::saving && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    end_process(self, failure, kFailed);
  };
  RankSession session(place, RankOptions{.timeout = options.timeout, .lost = lost}, self.status);
  const auto fail = [&](const std::string& message, bool secondary, int exit_code) {
    const std::string reason = with_flags(message);
    RankFailure failure = session.fail(reason, secondary);
    // All ranks find a wrong configuration; each says so itself.
    if (exit_code == kWrongUsage) failure.reason = reason;
    end_process(self, failure, exit_code);
  };
  try {
    session.join();
    self.rank = session.group().rank();
    const int exit_code = work(session.shared_group(), session.local_rank());
    std::cout.flush();
    self.exit_code = exit_code;
    session.finish();
    return exit_code;
  } catch (const RendezvousError& error) {
    // Nobody else knows of us.
    if (!session.is_watched()) throw;
    fail(error.what(), true, kFailed);
  } catch (const ConnectionError& error) {
    fail(error.what(), true, kFailed);
  } catch (const ConfigError& error) {
    fail(error.what(), false, kWrongUsage);
  } catch (const std::bad_alloc&) {
    fail(options.run.empty() ? "not enough memory; start more ranks, or give fewer tokens"
                             : "not enough memory; lower train.batch_size or the sizes of the model",
         false, kFailed);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    fail(text.substr(0, text.find('\n')), false, kFailed);
  }
  return kFailed;
}

}  // namespace routing
