// Bytes that wait to be sent: small pieces put together, large ones kept as they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace routing::http {

class OutQueue {
 public:
  void push(std::string piece) {
    queued_ += piece.size();
    if (!pieces_.empty() && pieces_.back().size() + piece.size() <= kSmall) {
      pieces_.back() += piece;
    } else if (!piece.empty()) {
      pieces_.push_back(std::move(piece));
    }
  }
  // The first ones, as many as there are.
  static constexpr std::size_t kViews = 16;
  std::size_t views(std::array<std::string_view, kViews>& views) const {
    std::size_t count = 0;
    for (const std::string& piece : pieces_) {
      if (count == kViews) break;
      views[count] = piece;
      if (count == 0) views[count].remove_prefix(first_sent_);
      ++count;
    }
    return count;
  }
  // So many of the first bytes are sent.
  void pop(std::size_t bytes) {
    sent_ += bytes;
    while (bytes > 0) {
      const std::size_t rest = pieces_.front().size() - first_sent_;
      if (bytes < rest) {
        first_sent_ += bytes;
        return;
      }
      bytes -= rest;
      first_sent_ = 0;
      pieces_.pop_front();
    }
    if (pieces_.empty()) pieces_.shrink_to_fit();
  }
  bool empty() const { return pieces_.empty(); }
  std::size_t size() const { return static_cast<std::size_t>(queued_ - sent_); }
  // All that was ever pushed, and sent.
  std::uint64_t queued() const { return queued_; }
  std::uint64_t sent() const { return sent_; }

 private:
  static constexpr std::size_t kSmall = 16U << 10U;
  std::deque<std::string> pieces_;
  std::size_t first_sent_ = 0;
  std::uint64_t queued_ = 0, sent_ = 0;
};

}  // namespace routing::http
