#include "routing/serving/http/connection.h"
#include "routing/serving/http/wire/response_text.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

namespace routing::http {
namespace {

namespace asio = boost::asio;
using Socket = asio::ip::tcp::socket;

}  // namespace

void Connection::pump() {
  if (phase_ != Phase::answering) return;
  Exchange::News news = exchange_->take();
  if (news.broken) return reset_connection();
  if (news.dropped) {
    news.head = core_.error_response(500, "the server failed");
    news.complete = true;
  }
  if (news.head) queue_head(news);
  if (!news.bytes.empty()) queue_piece(std::move(news.bytes));
  if (news.complete && !whole_out_) {
    if (chunked_) out_.push("0\r\n\r\n");
    whole_out_ = true;
  }
  flush();
}

void Connection::queue_head(Exchange::News& news) {
  Response& head = *news.head;
  HeadOptions options{.length = head.body.size(), .minor_version = minor_version_};
  if (news.streams) options.framing = minor_version_ > 0 ? Framing::chunks : Framing::until_close;
  drops_body_ = head_only_ || !has_body(head.status);
  chunked_ = options.framing == Framing::chunks && !drops_body_;
  close_after_ |= core_.stopping || (options.framing == Framing::until_close && !drops_body_);
  options.close = close_after_;
  out_.push(head_text(head, news.extra, options));
  if (!news.streams && !drops_body_) out_.push(std::move(head.body));
  ++core_.tallies.answers.at(static_cast<std::size_t>(head.status / 100));
  head_out_ = true;
}

void Connection::queue_piece(std::string piece) {
  if (drops_body_) return;
  if (chunked_) out_.push(chunk_size_line(piece.size()));
  out_.push(std::move(piece));
  if (chunked_) out_.push("\r\n");
}

// Something that a client which only closed its own side must ignore, and that one which is gone answers with a reset.
// A chunk's size may begin with zeros; where other bytes wait to be sent they do as well.
void Connection::probe() {
  if (probed_ || whole_out_ || !out_.empty()) return wait_to_read();
  probed_ = true;
  if (!head_out_ && minor_version_ > 0) out_.push("HTTP/1.1 100 Continue\r\n\r\n");
  if (head_out_ && chunked_) out_.push("0");
  flush();
  wait_to_read();
}

void Connection::flush() {
  while (!out_.empty()) {
    std::array<std::string_view, OutQueue::kViews> views;
    out_.views(views);
    std::array<asio::const_buffer, OutQueue::kViews> buffers;
    for (std::size_t i = 0; i < views.size(); ++i) buffers[i] = asio::buffer(views[i].data(), views[i].size());
    boost::system::error_code error;
    const std::size_t count = socket_.write_some(buffers, error);
    if (error == asio::error::would_block || error == asio::error::try_again) break;
    if (error) return close();
    out_.pop(count);
    core_.tallies.bytes_out += count;
  }
  if (!out_.empty()) wait_to_write();
  if (phase_ != Phase::answering) return;
  exchange_->set_unsent(out_.size());
  if (!out_.empty()) {
    if (waiting_ != Waiting::write) set_write_deadline();
    return;
  }
  if (waiting_ == Waiting::write) clear_deadline();
  if (whole_out_) finished();
}

void Connection::wait_to_write() {
  if (write_wait_) return;
  write_wait_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const boost::system::error_code& error) {
    self->write_wait_ = false;
    if (self->phase_ == Phase::closed) return;
    self->guarded([&] { error ? self->close() : self->flush(); });
  });
}

// What waits now must be sent by then; what comes later gets another deadline after it.
void Connection::set_write_deadline() {
  write_mark_ = out_.queued();
  set_deadline(Waiting::write, core_.options.limits.seconds_to_write);
}

void Connection::finished() {
  exchange_->connection = nullptr;
  exchange_->finish();
  exchange_.reset();
  if (close_after_ || core_.stopping) return linger();
  phase_ = Phase::reading;
  set_deadline(Waiting::idle, core_.options.limits.seconds_idle);
  advance();
}

void Connection::linger() {
  phase_ = Phase::lingering;
  input_ = {};
  taken_ = 0;
  boost::system::error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error || input_ended_) return close();
  set_deadline(Waiting::linger, core_.options.limits.seconds_to_linger);
  wait_to_read();
}

// The kernel forgets what it has not sent: a client that takes nothing must not hold memory there either.
void Connection::reset_connection() {
  boost::system::error_code ignored;  // closing comes next, whatever this says
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  const bool answering = phase_ == Phase::answering;
  phase_ = Phase::closed;
  clear_deadline();
  boost::system::error_code ignored;  // the descriptor is free in any case
  socket_.close(ignored);
  reader_.reset();
  body_bytes_.set(0);
  if (exchange_) {
    exchange_->connection = nullptr;
    const std::function<void()> when_gone = exchange_->leave();
    exchange_.reset();
    if (answering) ++core_.tallies.gone;
    if (when_gone) core_.guarded("what was to happen when a client is gone", when_gone);
  }
  core_.forget(this);
}

}  // namespace routing::http
