#include "shell/interrupts.h"

#include <csignal>

namespace routing {
namespace {

// Handlers may touch only such variables.
volatile std::sig_atomic_t interrupt_requested = 0;

void remember(int signal) {
  interrupt_requested = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupt_requested = 0;
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::requested() {
  return interrupt_requested != 0;
}

}  // namespace routing
