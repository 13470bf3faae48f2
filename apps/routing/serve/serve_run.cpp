#include "serve/api_server.h"
#include "serve/page/page_files.h"
#include "shell/engine.h"
#include "shell/interrupts.h"

#include <iostream>
#include <mutex>
#include <string>

namespace routing {
namespace {

std::string address_of(const ServeOptions& options, std::uint16_t port) {
  const bool is_v6 = options.host.find(':') != std::string::npos;
  return "http://" + (is_v6 ? "[" + options.host + "]" : options.host) + ":" + std::to_string(port);
}

std::string names_of(const std::vector<ServedRun>& runs) {
  if (runs.empty()) return "no runs yet";
  constexpr std::size_t kMostNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(runs.size(), kMostNamed); ++i) names += (i > 0 ? ", " : "") + runs[i].id;
  if (runs.size() > kMostNamed) names += " and " + std::to_string(runs.size() - kMostNamed) + " more";
  return names;
}

}  // namespace

int run_serve(const ServeOptions& options, const ProgramOptions& program) {
  // Notes come from all threads.
  std::mutex mutex;
  const auto note = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    if (!program.quiet) std::cerr << "routing: " + text + "\n";
  };
  const InterruptGuard interrupts;
  ApiServer server(options, note);
  note("serving " + names_of(server.runs()));
  if (page_files().empty()) {
    note("the page was not built, because Node.js was not there; install Node.js 18 or later, then: make web");
  }
  if (server.connection_limit() < static_cast<std::size_t>(options.connections)) {
    note("the system allows " + std::to_string(server.connection_limit()) + " connections of " +
         std::to_string(options.connections) + "; raise the limit of open files (ulimit -n) for more");
  }
  // The result: where it is. A script that took port 0 reads it here.
  std::cout << address_of(options, server.port()) << std::endl;
  server.run([] { return InterruptGuard::requested(); });
  note("stopped");
  return kDone;
}

}  // namespace routing
