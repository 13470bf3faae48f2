// One request and its answer, between the thread that answers and the I/O thread.
//
// The answering thread leaves what it has here and wakes the I/O thread through the mailbox; until that has looked,
// further pieces only join the ones that lie there. So a thousand small writes cost a thousand short locks, not a
// thousand turns of the I/O thread.
#pragma once

#include "routing/serving/http/reply.h"
#include "routing/serving/http/wire/message.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace routing::http {

class Connection;
class Exchange;

// Where exchanges wait for the I/O thread; outlives the server as long as somebody holds a Reply.
class Mailbox {
 public:
  // `wake` makes the I/O thread call take() soon; never called after close().
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  // False once closed.
  bool post(std::shared_ptr<Exchange> exchange);
  std::vector<std::shared_ptr<Exchange>> take();
  void close();

  // Bytes of bodies that are being read and of answers that are not sent, of all connections.
  std::atomic<std::int64_t> waiting_bytes{0};

 private:
  std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<std::shared_ptr<Exchange>> exchanges_;
  bool open_ = true;
};

// How long the I/O thread leaves mail alone after it has written to so many clients. Writing a few bytes to a client
// costs the machine about ten microseconds, reading them as many, so that streams of single tokens would take a core
// away from what computes them. After a pause several of them go at once. One client alone never waits, and nobody
// longer than four milliseconds.
std::chrono::microseconds pause_after_mail(std::size_t clients);

// A share of Mailbox::waiting_bytes.
class WaitingBytes {
 public:
  explicit WaitingBytes(std::shared_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) {}
  ~WaitingBytes() { set(0); }
  WaitingBytes(const WaitingBytes&) = delete;
  WaitingBytes& operator=(const WaitingBytes&) = delete;
  void set(std::size_t bytes);
  // Of all, if this share were as large.
  std::int64_t total_with(std::size_t bytes) const;

 private:
  std::shared_ptr<Mailbox> mailbox_;
  std::size_t bytes_ = 0;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Options {
    std::size_t unsent_bytes = 0;  // as in Limits
    std::size_t waiting_bytes = 0;
    bool head_only = false;  // the request is HEAD: pieces are dropped
  };
  Exchange(std::shared_ptr<Mailbox> mailbox, Options options)
      : mailbox_(std::move(mailbox)), options_(options), waiting_(mailbox_) {}

  // Of the thread that answers; as in Reply.
  void add_headers(Headers headers);
  void send(Response response);
  void begin(Response head);
  bool write(std::string piece);
  void end();
  bool gone() const { return gone_; }
  void when_gone(std::function<void()> function);
  // No handle is left.
  void drop();

  // Of the I/O thread from here on.
  struct News {
    std::optional<Response> head;  // with the whole body if nothing was streamed
    Headers extra;                 // of the head
    bool streams = false;
    std::string bytes;
    bool complete = false;
    bool broken = false;   // the client is too slow, or a stream will not be ended
    bool dropped = false;  // nobody will answer
  };
  // What is new since the last time; everything but `broken` and `complete` only once.
  News take();
  // How many bytes of what was taken are not sent.
  void set_unsent(std::size_t bytes);
  // The client has everything.
  void finish();
  // The client is gone; the function to call, if there is one.
  std::function<void()> leave();
  // Of a function that came after leave().
  std::function<void()> take_late_function();

  Connection* connection = nullptr;  // while it is being answered

 private:
  enum class Stage { waiting, streaming, complete };
  void update_waiting() { waiting_.set(ready_.size() + unsent_ + (head_ ? head_->body.size() : 0)); }
  // Whether to wake the I/O thread, after the lock.
  bool schedule();
  void wake(bool scheduled);

  std::shared_ptr<Mailbox> mailbox_;
  Options options_;
  mutable std::mutex mutex_;
  std::atomic<bool> gone_{false};
  Stage stage_ = Stage::waiting;
  bool scheduled_ = false, finished_ = false, streams_ = false, broken_ = false, dropped_ = false;
  std::optional<Response> head_;
  Headers extra_;
  std::string ready_;
  std::size_t unsent_ = 0;
  std::function<void()> when_gone_;
  WaitingBytes waiting_;
};

// The handle of an exchange; drops it when it goes.
std::shared_ptr<Reply> make_reply(std::shared_ptr<Exchange> exchange);

}  // namespace routing::http
