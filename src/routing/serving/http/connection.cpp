// Reading. What is written is in connection_writing.cpp.
#include "routing/serving/http/connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

namespace routing::http {
namespace {

namespace asio = boost::asio;
using Socket = asio::ip::tcp::socket;
using State = RequestReader::State;

// Larger memory for input is given back once the input is taken.
constexpr std::size_t kKeptInput = 4096;
// What a client may still send when it was refused: a few bodies.
constexpr std::size_t kLingeringBodies = 4;

}  // namespace

Connection::Connection(Core& core, Socket socket, std::string peer)
    : core_(core), socket_(std::move(socket)), peer_(std::move(peer)), body_bytes_(core.mailbox) {
  socket_.non_blocking(true);
}

void Connection::start() {
  guarded([&] {
    set_deadline(Waiting::idle, core_.options.limits.seconds_idle);
    wait_to_read();
  });
}

void Connection::start_refusing() {
  guarded([&] { refuse(503, "too many connections; try again in a second"); });
}

// While a request is answered only little is taken of what follows it: the client has to wait.
bool Connection::may_read() const {
  return !input_ended_ && (phase_ != Phase::answering || untaken() < core_.options.limits.header_bytes);
}

void Connection::wait_to_read() {
  if (phase_ == Phase::closed || read_wait_) return;
  if (!may_read()) return wait_for_error();
  read_wait_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    self->read_wait_ = false;
    if (self->phase_ == Phase::closed) return;
    self->guarded([&] { error ? self->close() : self->read_some(); });
  });
}

// Without reading, a reset is all that can be seen. Urgent data wakes this too; nobody has a use for it in HTTP.
void Connection::wait_for_error() {
  if (phase_ != Phase::answering || error_wait_) return;
  error_wait_ = true;
  socket_.async_wait(Socket::wait_error, [self = shared_from_this()](const boost::system::error_code&) {
    self->error_wait_ = false;
    self->close();
  });
}

void Connection::read_some() {
  const std::size_t room =
      phase_ == Phase::answering ? core_.options.limits.header_bytes - untaken() : core_.scratch.size();
  boost::system::error_code error;
  const std::size_t count =
      socket_.read_some(asio::buffer(core_.scratch.data(), std::min(room, core_.scratch.size())), error);
  if (error == asio::error::eof) {
    input_ended_ = true;
    on_end_of_input();
  } else if (error && error != asio::error::would_block && error != asio::error::try_again) {
    return close();
  }
  core_.tallies.bytes_in += count;
  if (phase_ == Phase::lingering) {
    lingered_bytes_ += count;
    if (lingered_bytes_ > kLingeringBodies * core_.options.limits.body_bytes) return close();
  } else if (count > 0) {
    input_.erase(0, std::exchange(taken_, 0));
    input_.append(core_.scratch.data(), count);
    if (phase_ == Phase::reading) advance();
  }
  wait_to_read();
}

void Connection::on_end_of_input() {
  if (phase_ == Phase::reading) {
    if (!reader_ || !reader_->begun()) return close();
    refuse(400, "the request ended before it was complete");
  } else if (phase_ == Phase::answering) {
    probe();
  } else {
    close();
  }
}

// As many requests as there are, one after the other. An answer that is out at once comes back here: the loop goes on
// then.
void Connection::advance() {
  if (advancing_) return;
  advancing_ = true;
  while (phase_ == Phase::reading && read_on()) continue;
  advancing_ = false;
  if (phase_ == Phase::reading && input_ended_) on_end_of_input();
  wait_to_read();
}

// One step of the request that is being read; whether there may be another.
bool Connection::read_on() {
  const std::string_view input = std::string_view(input_).substr(taken_);
  // A request without a body is complete when its head is.
  if (input.empty() && (!reader_ || reader_->state() != State::complete)) return false;
  if (!reader_) {
    reader_ = std::make_unique<RequestReader>(core_.options.limits.header_bytes, core_.options.limits.body_bytes);
  }
  taken_ += reader_->read(input);
  if (taken_ == input_.size()) {
    taken_ = 0;
    input_.clear();
    if (input_.capacity() > kKeptInput) input_.shrink_to_fit();
  }
  switch (reader_->state()) {
    case State::header:
      if (reader_->begun() && waiting_ != Waiting::header) {
        set_deadline(Waiting::header, core_.options.limits.seconds_to_read_header);
      }
      return false;
    case State::head:
      on_head();
      return true;
    case State::body:
      account_body();
      return false;
    case State::complete:
      answer();
      return true;
    case State::refused:
      refuse(reader_->refusal().status, reader_->refusal().message);
      return true;
  }
  return false;
}

void Connection::on_head() {
  Request& request = reader_->request();
  request.peer = peer_;
  Admission admission;
  try {
    if (core_.options.admit) admission = core_.options.admit(request);
  } catch (const std::exception& error) {
    core_.tell("a request could not be admitted: " + std::string(error.what()));
    admission.refusal = core_.error_response(500, "the server failed");
  }
  begin_exchange();
  exchange_->add_headers(std::move(admission.headers));
  if (admission.refusal) {
    close_after_ |= reader_->has_body();
    exchange_->send(std::move(*admission.refusal));
    leave_reading();
    return pump();
  }
  if (reader_->has_body()) set_deadline(Waiting::body, core_.options.limits.seconds_to_read_body);
  const bool waits = reader_->expects_continue() && untaken() == 0;
  reader_->read_body();
  if (!waits) return;
  out_.push("HTTP/1.1 100 Continue\r\n\r\n");
  flush();
}

// All bodies together have a limit, too.
void Connection::account_body() {
  const std::size_t bytes = reader_->body_bytes();
  if (body_bytes_.total_with(bytes) > static_cast<std::int64_t>(core_.options.limits.waiting_bytes)) {
    return refuse(503, "too much is being sent to the server; try again in a second");
  }
  body_bytes_.set(bytes);
}

void Connection::answer() {
  Request request = std::move(reader_->request());
  leave_reading();
  ++core_.tallies.requests;
  try {
    // The only handle, unless the handler keeps it: one that forgets to answer is noticed.
    core_.options.handler(std::move(request), make_reply(exchange_));
  } catch (const std::exception& error) {
    core_.tell("a request failed: " + std::string(error.what()));
  }
  pump();
  if (phase_ == Phase::answering && input_ended_) probe();
}

// The phase that follows has an exchange.
void Connection::begin_exchange() {
  const bool known = reader_ && (reader_->state() == State::head || reader_->state() == State::complete);
  head_only_ = known && reader_->request().method == "HEAD";
  minor_version_ = known ? reader_->request().minor_version : 1;
  close_after_ = !known || !reader_->keeps_alive();
  head_out_ = whole_out_ = probed_ = chunked_ = drops_body_ = false;
  exchange_ =
      std::make_shared<Exchange>(core_.mailbox, Exchange::Options{.unsent_bytes = core_.options.limits.unsent_bytes,
                                                                  .waiting_bytes = core_.options.limits.waiting_bytes,
                                                                  .head_only = head_only_});
  exchange_->connection = this;
}

void Connection::leave_reading() {
  phase_ = Phase::answering;
  clear_deadline();
  body_bytes_.set(0);
  reader_.reset();
}

void Connection::refuse(int status, const std::string& message) {
  if (!exchange_) begin_exchange();
  close_after_ = true;
  if (status == 503) exchange_->add_headers({{"Retry-After", "1"}});
  if (status == 405) exchange_->add_headers({{"Allow", "GET, HEAD, POST, OPTIONS"}});
  exchange_->send(core_.error_response(status, message));
  leave_reading();
  pump();
}

void Connection::set_deadline(Waiting what, double seconds) {
  waiting_ = what;
  core_.set_deadline(this, Core::in_seconds(seconds));
}

void Connection::clear_deadline() {
  waiting_ = Waiting::nothing;
  core_.clear_deadline(this);
}

void Connection::on_deadline() {
  guarded([&] {
    switch (std::exchange(waiting_, Waiting::nothing)) {
      case Waiting::header:
        ++core_.tallies.timeouts;
        return refuse(408, "the header of the request did not come in time");
      case Waiting::body:
        ++core_.tallies.timeouts;
        return refuse(408, "the body of the request did not come in time");
      case Waiting::write:
        // Slow, but not as slow as that: what is waiting now has come since.
        if (out_.sent() >= write_mark_) return set_write_deadline();
        ++core_.tallies.timeouts;
        return reset_connection();
      case Waiting::idle:
      case Waiting::linger:
        return close();
      case Waiting::nothing:
        return;
    }
  });
}

void Connection::finish_soon() {
  const bool idle = phase_ == Phase::reading && untaken() == 0 && (!reader_ || !reader_->begun());
  if (idle) close();
}

}  // namespace routing::http
