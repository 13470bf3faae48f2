// The thread that reads files for the page, so that neither sockets nor models wait for a disk.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace routing {

class FileWorker {
 public:
  using Task = std::function<void()>;
  // `tick` is called about once a second, also while there are tasks. Neither may throw.
  explicit FileWorker(Task tick);
  // Finishes what was posted.
  ~FileWorker();
  FileWorker(const FileWorker&) = delete;
  FileWorker& operator=(const FileWorker&) = delete;

  // False where too many tasks wait already.
  bool post(Task task);

 private:
  void run();

  static constexpr std::size_t kMostTasks = 1024;

  Task tick_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Task> tasks_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace routing
