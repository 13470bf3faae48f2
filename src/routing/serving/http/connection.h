// One client. It waits until the socket can be read or written and then does as much as goes without waiting; nothing
// here blocks, and everything runs on the I/O thread.
//
//   reading     a request is to come, or a part of it has
//   answering   the handler has it; what the client sends meanwhile lies here until the answer is out
//   lingering   the last answer is out and our side closed; what still comes is dropped until the client closes,
//   because a
//               connection closed with unread bytes is reset, and a reset takes away an answer that was not read yet
#pragma once

#include "routing/serving/http/core.h"
#include "routing/serving/http/out_queue.h"
#include "routing/serving/http/wire/request_reader.h"

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

namespace routing::http {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Core& core, boost::asio::ip::tcp::socket socket, std::string peer);

  void start();
  // There are too many: says so and closes.
  void start_refusing();
  // The exchange has news.
  void on_news() {
    guarded([this] { pump(); });
  }
  void on_deadline();
  // The server accepts no more: closes, at once or after the answer.
  void finish_soon();
  void close();

 private:
  enum class Phase { reading, answering, lingering, closed };
  enum class Waiting { nothing, header, body, idle, write, linger };  // for what the deadline is

  // Nothing that happens to one client may end the server.
  template <class Action>
  void guarded(const Action& action) {
    try {
      action();
    } catch (const std::exception& error) {
      core_.tell("the connection of " + peer_ + " was closed: " + error.what());
      close();
    }
  }
  void wait_to_read();
  void wait_for_error();
  bool may_read() const;
  std::size_t untaken() const { return input_.size() - taken_; }
  void read_some();
  void on_end_of_input();
  void advance();
  bool read_on();
  void on_head();
  void account_body();
  void answer();
  void begin_exchange();
  void leave_reading();
  void refuse(int status, const std::string& message);

  void pump();
  void queue_head(Exchange::News& news);
  void queue_piece(std::string piece);
  void probe();
  void flush();
  void wait_to_write();
  void finished();
  void linger();
  void reset_connection();

  void set_deadline(Waiting what, double seconds);
  void set_write_deadline();
  void clear_deadline();

  Core& core_;
  boost::asio::ip::tcp::socket socket_;
  std::string peer_;
  Phase phase_ = Phase::reading;
  Waiting waiting_ = Waiting::nothing;
  bool read_wait_ = false, write_wait_ = false, error_wait_ = false;  // which operations Asio holds
  bool advancing_ = false;
  bool input_ended_ = false;

  std::string input_;      // what was read
  std::size_t taken_ = 0;  // so much of it by the reader
  std::unique_ptr<RequestReader> reader_;
  WaitingBytes body_bytes_;

  std::shared_ptr<Exchange> exchange_;
  bool close_after_ = false;  // this answer is the last
  bool head_only_ = false;
  int minor_version_ = 1;
  bool head_out_ = false, whole_out_ = false, probed_ = false;
  bool chunked_ = false, drops_body_ = false;
  OutQueue out_;
  std::uint64_t write_mark_ = 0;  // what must be sent when the deadline of writing comes
  std::size_t lingered_bytes_ = 0;
};

}  // namespace routing::http
