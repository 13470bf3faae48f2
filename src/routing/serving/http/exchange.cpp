#include "routing/serving/http/exchange.h"

#include "routing/core/error.h"
#include "routing/serving/http/wire/response_text.h"

#include <algorithm>
#include <utility>

namespace routing::http {
namespace {

// With so little waiting nobody is slow, however much all wait for together.
constexpr std::size_t kFairShare = 64U << 10U;

class ExchangeReply : public Reply {
 public:
  explicit ExchangeReply(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~ExchangeReply() override { exchange_->drop(); }
  ExchangeReply(const ExchangeReply&) = delete;
  ExchangeReply& operator=(const ExchangeReply&) = delete;

  void add_headers(Headers headers) override { exchange_->add_headers(std::move(headers)); }
  void send(Response response) override { exchange_->send(std::move(response)); }
  void begin(Response head) override { exchange_->begin(std::move(head)); }
  bool write(std::string piece) override { return exchange_->write(std::move(piece)); }
  void end() override { exchange_->end(); }
  bool gone() const override { return exchange_->gone(); }
  void when_gone(std::function<void()> function) override { exchange_->when_gone(std::move(function)); }

 private:
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace

std::shared_ptr<Reply> make_reply(std::shared_ptr<Exchange> exchange) {
  return std::make_shared<ExchangeReply>(std::move(exchange));
}

std::chrono::microseconds pause_after_mail(std::size_t clients) {
  constexpr std::size_t kForEach = 100;
  constexpr std::size_t kLongest = 4000;
  return std::chrono::microseconds(clients <= 1 ? 0 : std::min(clients * kForEach, kLongest));
}

bool Mailbox::post(std::shared_ptr<Exchange> exchange) {
  const std::lock_guard lock(mutex_);
  if (!open_) return false;
  exchanges_.push_back(std::move(exchange));
  // Inside the lock, so that it cannot come after close().
  if (exchanges_.size() == 1) wake_();
  return true;
}

std::vector<std::shared_ptr<Exchange>> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(exchanges_, {});
}

void Mailbox::close() {
  // Dropped after the lock: what they hold may come back here.
  std::vector<std::shared_ptr<Exchange>> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(exchanges_);
  open_ = false;
}

void WaitingBytes::set(std::size_t bytes) {
  mailbox_->waiting_bytes += static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(bytes_);
  bytes_ = bytes;
}

std::int64_t WaitingBytes::total_with(std::size_t bytes) const {
  return mailbox_->waiting_bytes + static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(bytes_);
}

bool Exchange::schedule() {
  return !std::exchange(scheduled_, true);
}

void Exchange::wake(bool scheduled) {
  if (scheduled) mailbox_->post(shared_from_this());
}

void Exchange::add_headers(Headers headers) {
  check_headers(headers);
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::waiting) return;
  extra_.insert(extra_.end(), std::make_move_iterator(headers.begin()), std::make_move_iterator(headers.end()));
}

void Exchange::send(Response response) {
  check_response(response);
  std::unique_lock lock(mutex_);
  if (stage_ != Stage::waiting || gone_) return;
  stage_ = Stage::complete;
  head_ = std::move(response);
  update_waiting();
  const bool scheduled = schedule();
  lock.unlock();
  wake(scheduled);
}

void Exchange::begin(Response head) {
  check_response(head);
  std::unique_lock lock(mutex_);
  if (stage_ != Stage::waiting || gone_) return;
  stage_ = Stage::streaming;
  streams_ = true;
  if (!options_.head_only) ready_ = std::move(head.body);
  head.body.clear();
  head_ = std::move(head);
  update_waiting();
  const bool scheduled = schedule();
  lock.unlock();
  wake(scheduled);
}

bool Exchange::write(std::string piece) {
  std::unique_lock lock(mutex_);
  if (gone_ || stage_ == Stage::complete) return false;
  require<InputError>(stage_ == Stage::streaming,
                      "a piece of an answer was written before its head; call begin() first");
  if (piece.empty() || options_.head_only) return true;
  const std::size_t before = ready_.size() + unsent_;
  const std::size_t after = before + piece.size();
  const bool too_much =
      (before > 0 && after > options_.unsent_bytes) ||
      (after > kFairShare && waiting_.total_with(after) > static_cast<std::int64_t>(options_.waiting_bytes));
  if (too_much) {
    broken_ = true;
    gone_ = true;
  } else if (ready_.empty()) {
    ready_ = std::move(piece);
  } else {
    ready_ += piece;
  }
  update_waiting();
  const bool scheduled = schedule();
  lock.unlock();
  wake(scheduled);
  return !too_much;
}

void Exchange::end() {
  std::unique_lock lock(mutex_);
  if (gone_ || stage_ == Stage::complete) return;
  require<InputError>(stage_ == Stage::streaming, "an answer was ended before its head; call begin() first, or send()");
  stage_ = Stage::complete;
  const bool scheduled = schedule();
  lock.unlock();
  wake(scheduled);
}

void Exchange::drop() {
  std::unique_lock lock(mutex_);
  if (gone_ || stage_ == Stage::complete) return;
  (stage_ == Stage::waiting ? dropped_ : broken_) = true;
  const bool scheduled = schedule();
  lock.unlock();
  wake(scheduled);
}

void Exchange::when_gone(std::function<void()> function) {
  std::unique_lock lock(mutex_);
  if (finished_) return;
  // The former one goes after the lock: what it holds may be the last handle.
  when_gone_.swap(function);
  if (!gone_) return;
  lock.unlock();
  if (mailbox_->post(shared_from_this())) return;
  // The server has ended; a function that holds the last handle must not stay.
  lock.lock();
  when_gone_.swap(function);
}

Exchange::News Exchange::take() {
  const std::lock_guard lock(mutex_);
  scheduled_ = false;
  News news{.head = std::exchange(head_, std::nullopt),
            .extra = {},
            .streams = streams_,
            .bytes = std::exchange(ready_, {}),
            .complete = stage_ == Stage::complete,
            .broken = broken_,
            .dropped = std::exchange(dropped_, false)};
  if (news.head || news.dropped) news.extra = std::exchange(extra_, {});
  return news;
}

void Exchange::set_unsent(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  unsent_ = bytes;
  update_waiting();
}

void Exchange::finish() {
  std::function<void()> dropped;
  const std::lock_guard lock(mutex_);
  finished_ = true;
  unsent_ = 0;
  dropped.swap(when_gone_);
  update_waiting();
}

std::function<void()> Exchange::leave() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  head_.reset();
  ready_ = {};
  unsent_ = 0;
  update_waiting();
  return std::exchange(when_gone_, {});
}

std::function<void()> Exchange::take_late_function() {
  const std::lock_guard lock(mutex_);
  if (connection != nullptr || !gone_) return {};
  scheduled_ = false;
  return std::exchange(when_gone_, {});
}

}  // namespace routing::http
