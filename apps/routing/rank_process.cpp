#include "rank_process.h"

#include "commands.h"
#include "rank_launcher.h"
#include "routing/core/error.h"
#include "routing/distributed/rendezvous.h"
#include "routing/training/rank_log.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <iostream>
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
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::closefrom(STDERR_FILENO + 1);
  ::execve("/proc/self/exe", argv.data(), environ);
  ::_exit(kFailed);
}

// The end of this process after a failure of the run; only the first call counts.
[[noreturn]] void end_process(const RankPlace& place, const RankProcessOptions& options, const RankFailure& failure,
                              int exit_code) {
  static std::atomic<bool> ending{false};
  while (ending.exchange(true)) std::this_thread::sleep_for(std::chrono::hours(1));
  note(options.run, place.rank, "ended: " + failure.text());
  const bool again = exit_code == kFailed && place.attempt < options.restarts && !is_launched();
  if (!is_launched()) {
    const bool own = failure.rank == place.rank;
    std::cerr << "routing: " << (again ? "" : "error: ")
              << (own ? "" : "rank " + std::to_string(place.rank) + " ends: ") << failure.text()
              << (exit_code == kFailed ? remedy(options.run) : "") << "\n";
    if (again) std::cerr << "routing: rank " << place.rank << " starts again, restart " << place.attempt + 1 << "\n";
  }
  if (again) start_anew(place, options);
  ::_exit(exit_code);
}

}  // namespace

bool is_launched() {
  return std::getenv(kLaunchedVariable) != nullptr;
}

int run_as_rank(const RankPlace& place, const RankProcessOptions& options,
                const std::function<int(const std::shared_ptr<RankGroup>&, int local_rank)>& work) {
  std::unique_ptr<RankSession> session;
  std::atomic<RankSession*> joined{nullptr};
  const auto lost = [&](const RankFailure& failure) {
    // A checkpoint that is being written is worth a moment.
    const auto deadline = Clock::now() + options.timeout / 8;
    while (joined != nullptr && joined.load()->group().status().phase() == RankPhase::saving &&
           Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    end_process(place, options, failure, kFailed);
  };
  session = std::make_unique<RankSession>(place, RankOptions{.timeout = options.timeout, .lost = lost});
  joined = session.get();
  const auto fail = [&](const std::string& reason, bool secondary, int exit_code) {
    const RankFailure failure = session->fail(reason, secondary);
    end_process(place, options, failure, failure.rank == session->group().rank() ? exit_code : kFailed);
  };
  try {
    const int exit_code = work(session->shared_group(), session->local_rank());
    session->finish();
    return exit_code;
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
