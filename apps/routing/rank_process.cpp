#include "rank_process.h"

#include "commands.h"
#include "rank_launcher.h"
#include "routing/core/error.h"
#include "routing/distributed/rendezvous.h"
#include "routing/training/rank_log.h"

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
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  // At the moment of the exec: other threads still look at them.
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execve("/proc/self/exe", argv.data(), environ);
  ::_exit(kFailed);
}

// The end of this process after a failure of the run; only the first call counts.
[[noreturn]] void end_process(const RankPlace& place, const RankProcessOptions& options, const RankFailure& failure,
                              int exit_code) {
  static std::atomic<bool> ending{false};
  while (ending.exchange(true)) std::this_thread::sleep_for(std::chrono::hours(1));
  const bool wrong_usage = exit_code == kWrongUsage;
  note(options.run, place.rank, "ended: " + (wrong_usage ? failure.reason : failure.text()));
  const bool again = exit_code == kFailed && place.attempt < options.restarts && !is_launched();
  if (!is_launched()) {
    const bool own = failure.rank == place.rank || wrong_usage;
    std::cerr << "routing: " << (again ? "" : "error: ")
              << (own ? "" : "rank " + std::to_string(place.rank) + " ends: ")
              << (wrong_usage ? failure.reason : failure.text() + remedy(options.run)) << "\n";
    if (again) std::cerr << "routing: rank " << place.rank << " starts again, restart " << place.attempt + 1 << "\n";
  }
  if (again) start_anew(place, options);
  ::_exit(exit_code);
}

}  // namespace

namespace {

// For on_terminate(), which gets no arguments.
struct Running {
  const RankPlace* place = nullptr;
  const RankProcessOptions* options = nullptr;
  RankSession* session = nullptr;
};
Running running;

// A thread of c10d 1.13 that listens to the store throws when its connection is reset, and nobody can catch it there.
[[noreturn]] void on_terminate() {
  std::string reason = "the program was terminated";
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "something that is no exception was thrown";
  }
  const std::string address = running.place->master_address + ":" + std::to_string(running.place->master_port);
  end_process(
      *running.place, *running.options,
      {.rank = running.place->rank,
       .step = running.session == nullptr ? 0 : running.session->status().step(),
       .reason = "its connection to the store at " + address + " broke: " + reason.substr(0, reason.find('\n'))},
      kFailed);
}

}  // namespace

bool is_launched() {
  return std::getenv(kLaunchedVariable) != nullptr;
}

int run_as_rank(const RankPlace& place, const RankProcessOptions& options,
                const std::function<int(const std::shared_ptr<RankGroup>&, int local_rank)>& work) {
  // A connection that breaks is an error of the call, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  running = {.place = &place, .options = &options};
  std::set_terminate(on_terminate);
  std::unique_ptr<RankSession> session;
  std::atomic<RankSession*> started{nullptr};
  const auto lost = [&](const RankFailure& failure) {
    // A checkpoint that is being written is worth a moment.
    const auto deadline = Clock::now() + options.timeout / 8;
    while (started != nullptr && started.load()->status().phase() == RankPhase::saving && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    end_process(place, options, failure, kFailed);
  };
  session = std::make_unique<RankSession>(place, RankOptions{.timeout = options.timeout, .lost = lost});
  started = session.get();
  running.session = session.get();
  const auto fail = [&](const std::string& reason, bool secondary, int exit_code) {
    RankFailure failure = session->fail(reason, secondary);
    // All ranks find a wrong configuration; each says so itself.
    if (exit_code == kWrongUsage) failure.reason = reason;
    end_process(place, options, failure, exit_code);
  };
  try {
    session->join();
    const int exit_code = work(session->shared_group(), session->local_rank());
    session->finish();
    return exit_code;
  } catch (const RendezvousError& error) {
    // Nobody else knows of us.
    if (!session->is_watched()) throw;
    fail(error.what(), true, kFailed);
  } catch (const ConnectionError& error) {
    fail(error.what(), true, kFailed);
  } catch (const ConfigError& error) {
    fail(error.what(), false, kWrongUsage);
  } catch (const std::bad_alloc&) {
    fail("not enough memory; lower train.batch_size or the sizes of the model", false, kFailed);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    fail(text.substr(0, text.find('\n')), false, kFailed);
  }
  return kFailed;
}

}  // namespace routing
