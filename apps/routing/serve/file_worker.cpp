#include "serve/file_worker.h"

#include <chrono>
#include <utility>

namespace routing {

FileWorker::FileWorker(Task tick) : tick_(std::move(tick)), thread_([this] { run(); }) {}

FileWorker::~FileWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

bool FileWorker::post(Task task) {
  const std::lock_guard lock(mutex_);
  if (ends_ || tasks_.size() >= kMostTasks) return false;
  tasks_.push_back(std::move(task));
  posted_.notify_one();
  return true;
}

void FileWorker::run() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_tick = Clock::now();
  std::unique_lock lock(mutex_);
  while (!ends_ || !tasks_.empty()) {
    const bool has_task = posted_.wait_until(lock, next_tick, [&] { return ends_ || !tasks_.empty(); });
    if (has_task && !tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = {};
      lock.lock();
    }
    if (Clock::now() < next_tick) continue;
    lock.unlock();
    tick_();
    lock.lock();
    next_tick = Clock::now() + std::chrono::seconds(1);
  }
}

}  // namespace routing
