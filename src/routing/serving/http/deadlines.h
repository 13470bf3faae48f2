// Who is to be woken when, the earliest first.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace routing::http {

template <class Sleeper>
class Deadlines {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // In place of the one that it had.
  void set(Sleeper* sleeper, Time time) {
    clear(sleeper);
    order_.emplace(time, sleeper);
    times_.emplace(sleeper, time);
  }
  void clear(Sleeper* sleeper) {
    const auto found = times_.find(sleeper);
    if (found == times_.end()) return;
    order_.erase({found->second, sleeper});
    times_.erase(found);
  }
  std::optional<Time> earliest() const {
    return order_.empty() ? std::nullopt : std::optional<Time>(order_.begin()->first);
  }
  // One whose time has come, without its deadline; null if there is none.
  Sleeper* take_due(Time now) {
    if (order_.empty() || order_.begin()->first > now) return nullptr;
    Sleeper* const sleeper = order_.begin()->second;
    clear(sleeper);
    return sleeper;
  }

 private:
  std::set<std::pair<Time, Sleeper*>> order_;
  std::unordered_map<Sleeper*, Time> times_;
};

}  // namespace routing::http
