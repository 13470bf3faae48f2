#include "serve/compute_loop.h"

#include <utility>

namespace routing {
namespace {

// How long an idle loop sleeps before it asks whether it should go on.
constexpr std::chrono::milliseconds kNap{50};

}  // namespace

void ComputeLoop::post(Task task) {
  const std::lock_guard lock(mutex_);
  short_.push_back(std::move(task));
  posted_.notify_one();
}

void ComputeLoop::post_long(Task task) {
  const std::lock_guard lock(mutex_);
  long_.push_back(std::move(task));
  posted_.notify_one();
}

std::size_t ComputeLoop::waiting() const {
  const std::lock_guard lock(mutex_);
  return short_.size() + long_.size();
}

// All short tasks and one long one.
bool ComputeLoop::take_tasks(std::deque<Task>& now, bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) posted_.wait_for(lock, kNap, [&] { return !short_.empty() || !long_.empty(); });
  now = std::exchange(short_, {});
  if (!long_.empty()) {
    now.push_back(std::move(long_.front()));
    long_.pop_front();
  }
  return !now.empty();
}

void ComputeLoop::run(const Steps& steps) {
  bool idle = false;
  while (steps.goes_on()) {
    std::deque<Task> now;
    const bool had_tasks = take_tasks(now, idle);
    for (Task& task : now) {
      task();
      // What a task holds is let go here, and not after those behind it.
      task = {};
    }
    idle = !steps.advance() && !had_tasks;
  }
}

}  // namespace routing
