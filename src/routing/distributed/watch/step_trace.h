// When what happened in the steps of one rank, for chrome://tracing or ui.perfetto.dev: shows whether gradients travel
// while the backward pass goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace routing {

class StepTrace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Lane { work, network };
  struct Event {
    std::string name;
    Lane lane = Lane::work;
    Time begin, end;
    std::int64_t step = 0;
    std::int64_t bytes = 0;  // of network events
  };

  // `rank` names the row of the picture.
  explicit StepTrace(int rank) : rank_(rank) {}

  // Which step is being taken, for events of it.
  void begin_step(std::int64_t step) { step_ = step; }
  std::int64_t step() const { return step_; }
  // From any thread.
  void add(Event event);
  std::vector<Event> events() const;
  // The trace event format of Chrome: a JSON object with "traceEvents".
  void write(const std::filesystem::path& path) const;

 private:
  int rank_;
  std::int64_t step_ = 0;
  Time origin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

// Work of the current step, from here to the end of the scope. Without a trace nothing is written.
class TracedWork {
 public:
  TracedWork(StepTrace* trace, const char* name) : trace_(trace), name_(name) {}
  ~TracedWork();
  TracedWork(const TracedWork&) = delete;
  TracedWork& operator=(const TracedWork&) = delete;

 private:
  StepTrace* trace_;
  const char* name_;
  StepTrace::Time begin_ = std::chrono::steady_clock::now();
};

}  // namespace routing
