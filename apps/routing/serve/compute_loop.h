// Work that one thread does in turns: short tasks at once, then a step of what decodes, then one long task.
//
// Everything with tensors runs on the thread that calls run(): settings of libtorch and OpenMP belong to threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace routing {

class ComputeLoop {
 public:
  using Task = std::function<void()>;
  // Any thread; nothing is taken once the loop has ended. A task that throws is a mistake of whoever posted it.
  void post(Task task);       // before the next step: begins or ends a completion
  void post_long(Task task);  // one between two steps: reads a text, makes a picture
  std::size_t waiting() const;

  struct Steps {
    std::function<bool()> advance;  // a step; false if there was nothing to do
    std::function<bool()> goes_on;  // asked every now and then; false ends the loop
  };
  void run(const Steps& steps);

 private:
  bool take_tasks(std::deque<Task>& now, bool wait);

  mutable std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Task> short_;
  std::deque<Task> long_;
};

}  // namespace routing
