#include "routing/distributed/watch/step_trace.h"

#include "routing/core/files.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace routing {

void StepTrace::add(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

std::vector<StepTrace::Event> StepTrace::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

void StepTrace::write(const std::filesystem::path& path) const {
  const auto microseconds = [](std::chrono::steady_clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
  };
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const auto name_row = [&](const char* kind, int lane, const std::string& name) {
    list.push_back({{"name", kind}, {"ph", "M"}, {"pid", rank_}, {"tid", lane}, {"args", {{"name", name}}}});
  };
  name_row("process_name", 0, "rank " + std::to_string(rank_));
  name_row("thread_name", 0, "work");
  name_row("thread_name", 1, "network");
  for (const Event& event : events()) {
    nlohmann::ordered_json arguments{{"step", event.step}};
    if (event.lane == Lane::network) arguments["bytes"] = event.bytes;
    list.push_back({{"name", event.name},
                    {"cat", event.lane == Lane::work ? "work" : "network"},
                    {"ph", "X"},
                    {"pid", rank_},
                    {"tid", event.lane == Lane::work ? 0 : 1},
                    {"ts", microseconds(event.begin - origin_)},
                    {"dur", microseconds(event.end - event.begin)},
                    {"args", std::move(arguments)}});
  }
  write_file_at_once(path, nlohmann::ordered_json{{"traceEvents", std::move(list)}}.dump() + "\n");
}

TracedWork::~TracedWork() {
  if (trace_ == nullptr) return;
  trace_->add({.name = name_, .begin = begin_, .end = std::chrono::steady_clock::now(), .step = trace_->step()});
}

}  // namespace routing
