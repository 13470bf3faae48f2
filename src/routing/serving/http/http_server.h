// HTTP/1.1 over sockets: one thread reads and writes for thousands of connections; what an answer says is the caller's.
//
//   Server server({.address = {"127.0.0.1", 8080}, .handler = answer, .error_body = as_json});
//   std::thread io([&] { server.run(); });
//
// A connection has one request in work at a time: pipelined ones wait, so answers are in order. Bodies are read whole,
// with Content-Length or chunked, before the handler sees the request.
//
// Limits of time are deadlines for the whole header or body, not pauses between two reads: a byte every second does not
// hold a connection.
//
// A client that closes its writing side (shutdown) after its request still gets its answer. Since a client that went
// away altogether looks the same at first, the server then sends something that HTTP lets it send and every client must
// ignore: the interim answer 100, or a zero in front of the next chunk's size. A client that is gone answers with a
// reset, and Reply::when_gone is called at once, without waiting for the next piece. To a client of HTTP/1.0 nothing
// can be sent before the answer: there only the answer itself shows that it is gone. What was not seen: a client that
// closes one side and later the other, until something is written; one that sends more than Limits::header_bytes ahead
// of its answers.
#pragma once

#include "routing/core/error.h"
#include "routing/serving/http/reply.h"
#include "routing/serving/http/wire/message.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace routing::http {

// The server cannot listen at its address: which, why, what to do.
class ListenError : public Error {
 public:
  using Error::Error;
};

struct Address {
  std::string ip = "127.0.0.1";  // IPv4 or IPv6 in digits; "::" takes both kinds
  std::uint16_t port = 0;        // 0: any free one
};

// Whether only this machine reaches the address. InputError if it is none.
bool is_loopback(const std::string& ip);

struct Limits {
  std::size_t header_bytes = 16U << 10U;  // more: 431; also what a client may send ahead of its answers
  std::size_t body_bytes = 8U << 20U;     // more: 413, by Content-Length before anything of it is read
  std::size_t unsent_bytes = 4U << 20U;   // of one streamed answer, waiting for its client
  std::size_t waiting_bytes = 1U << 30U;  // bodies being read and unsent answers, all together; more: 503
  std::size_t connections = 10000;        // more: 503 and Retry-After
  double seconds_to_read_header = 10;     // from the first byte of a request on
  double seconds_to_read_body = 60;
  double seconds_idle = 60;      // before the first request, and between two
  double seconds_to_write = 60;  // what was written when they began must be taken when they end
  double seconds_to_linger = 1;  // for the client to read a last answer before the connection closes
};

// Of all connections since the start.
struct Counters {
  std::uint64_t connections_open = 0;
  std::uint64_t connections_total = 0;
  std::uint64_t connections_refused = 0;      // over the limit, or no descriptor left
  std::uint64_t requests = 0;                 // that reached the handler
  std::array<std::uint64_t, 6> answers = {};  // by the hundreds of their status; [2] are 200 … 299
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t timeouts = 0;  // connections ended by a deadline but the idle one
  std::uint64_t gone = 0;      // clients that left before they had the whole answer
};

// What is decided when the header of a request was read, before its body is.
struct Admission {
  std::optional<Response> refusal = {};  // sent instead of asking the handler
  Headers headers = {};                  // for the answer, whoever gives it
};

// Each is called on the I/O thread and must not block. An exception of the handler or of `admit` is answered with 500.
struct ServerOptions {
  Address address = {};
  Limits limits = {};
  std::function<void(Request, std::shared_ptr<Reply>)> handler = {};
  // Sees the request without its body.
  std::function<Admission(const Request&)> admit = {};
  // The answer to what never reaches the handler, and to its exceptions; plain text by default.
  std::function<Response(int status, const std::string& message)> error_body = {};
  // What no answer may tell: exceptions of the handler, trouble of accepting.
  std::function<void(const std::string&)> problem = {};
};

class Server {
 public:
  // Listens when it returns; clients wait until run(). Raises the limit of open files, as far as the system allows.
  // ListenError, InputError.
  explicit Server(ServerOptions options);
  ~Server();  // run() must have returned
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  // As many as `limits` asks for, or what the limit of open files leaves room for.
  std::size_t connection_limit() const;
  Counters counters() const;

  // The I/O thread. Returns after stop(), or after stop_accepting() when the last answer is out. Once.
  void run();

  // Any thread; not from a signal handler. New connections are refused from now on, idle ones closed; requests that are
  // being read or answered are finished, and their connections closed.
  void stop_accepting();
  // Any thread. All connections are closed as they are.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace routing::http
