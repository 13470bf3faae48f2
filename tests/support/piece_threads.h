// The pieces of a sequence as threads of one process that hand their rows to one another.
#pragma once

#include "routing/attention/pieces/sequence_piece.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace routing::support {

// What is on its way, in order.
class RowMail {
 public:
  void put(int from, int to, const at::Tensor& numbers) {
    const std::lock_guard lock(mutex_);
    mail_[{from, to}].push_back(numbers.clone());
    sent_ += numbers.numel() * numbers.element_size();
    came_.notify_all();
  }
  void take(int from, int to, const at::Tensor& numbers) {
    std::unique_lock lock(mutex_);
    std::deque<at::Tensor>& box = mail_[{from, to}];
    came_.wait(lock, [&] { return !box.empty(); });
    if (box.front().sizes() != numbers.sizes()) throw std::logic_error("a message of another shape");
    numbers.copy_(box.front());
    box.pop_front();
  }
  std::int64_t bytes_sent() const { return sent_; }
  bool is_empty() const {
    for (const auto& [pair, box] : mail_) {
      if (!box.empty()) return false;
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::pair<int, int>, std::deque<at::Tensor>> mail_;
  std::int64_t sent_ = 0;
};

class MailRows : public RowExchange {
 public:
  MailRows(RowMail& mail, int piece, int pieces) : mail_(mail), piece_(piece), pieces_(pieces) {}
  int piece() const override { return piece_; }
  int pieces() const override { return pieces_; }
  Arrival start_send(const at::Tensor& numbers, int piece) override {
    mail_.put(piece_, piece, numbers);
    return [] {};
  }
  // Into the tensor only when somebody waits for it.
  Arrival start_receive(const at::Tensor& numbers, int piece) override {
    return [this, numbers, piece] { mail_.take(piece, piece_, numbers); };
  }

 private:
  RowMail& mail_;
  int piece_, pieces_;
};

// Calls body(piece) for every piece at once; the bytes that all of them sent.
inline std::int64_t as_pieces(const std::vector<std::int64_t>& ends,
                              const std::function<void(const SequencePiece&)>& body) {
  RowMail mail;
  std::vector<std::thread> threads;
  const int pieces = static_cast<int>(ends.size());
  for (int number = 0; number < pieces; ++number) {
    threads.emplace_back([&, number] {
      MailRows rows(mail, number, pieces);
      body({.exchange = &rows, .ends = ends});
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!mail.is_empty()) throw std::logic_error("messages that nobody took");
  return mail.bytes_sent();
}

}  // namespace routing::support
