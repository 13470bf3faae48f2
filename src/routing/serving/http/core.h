// What the connections of a server share. Only the I/O thread touches it, but for the counters and the mailbox.
#pragma once

#include "routing/serving/http/deadlines.h"
#include "routing/serving/http/exchange.h"
#include "routing/serving/http/http_server.h"

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace routing::http {

class Connection;

struct Tallies {
  std::atomic<std::uint64_t> connections_open{0}, connections_total{0}, connections_refused{0}, requests{0},
      bytes_in{0}, bytes_out{0}, timeouts{0}, gone{0};
  std::array<std::atomic<std::uint64_t>, 6> answers{};
};

class Core {
 public:
  explicit Core(ServerOptions given);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  using Time = std::chrono::steady_clock::time_point;
  static Time in_seconds(double seconds);
  void set_deadline(Connection* connection, Time time);
  void clear_deadline(Connection* connection) { deadlines_.clear(connection); }
  // It is closed. The last one of a server that is stopping ends run().
  void forget(Connection* connection);
  void end_if_done();
  // To whom the options name.
  void tell(const std::string& problem) const;
  // What others wrote must not end the server.
  void guarded(const std::string& what, const std::function<void()>& action) const;
  Response error_response(int status, const std::string& message) const;

  boost::asio::io_context io{1};
  const ServerOptions options;
  std::shared_ptr<Mailbox> mailbox;
  Tallies tallies;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections;
  // One for all: bytes are only here between reading and being taken apart, so idle connections cost no buffers.
  std::array<char, (std::size_t{1} << 16U)> scratch{};
  bool stopping = false;

 private:
  void arm_timer();
  void on_mail();
  void read_mail();

  boost::asio::steady_timer timer_{io};
  boost::asio::steady_timer mail_timer_{io};
  Time next_mail_ = {};  // mail is not read before
  std::optional<Time> armed_for_;
  Deadlines<Connection> deadlines_;
};

}  // namespace routing::http
