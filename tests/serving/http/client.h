// A client of plain sockets: it sends any bytes and waits for what comes, but never for ever.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routing::http {

// Longer than anything takes on a machine that does something else.
constexpr std::chrono::seconds kPatience{60};

// An answer, taken apart by a reader of the tests' own.
struct Answer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;                            // chunks put together
  bool chunked = false;
  bool complete = false;  // as long as it says, or closed where it says nothing
};

class Client {
 public:
  struct Options {
    int receive_buffer = 0;  // of the kernel; a small one makes the client slow to take things
    std::uint32_t source =
        0;  // comes from 127.1.x.y: one address has too few ports for a million connections in a minute
  };
  // Connects to loopback.
  Client(std::uint16_t port, const Options& options);
  explicit Client(std::uint16_t port) : Client(port, Options{0, 0}) {}
  ~Client();
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  // All of it; false if the server does not take it: it closed, or reads nothing.
  bool send(std::string_view bytes, std::chrono::milliseconds patience = kPatience);
  // Some bytes as soon as there are some; nothing when the server closed or reset, or after so long.
  std::string receive_some(std::chrono::milliseconds patience = kPatience);
  // Until so many bytes have come, or the connection ended.
  std::string receive(std::size_t bytes);
  // Until the text was there; everything up to its end.
  std::string receive_until(std::string_view text);
  // Until the server closes.
  std::string receive_all();
  // The next answer; 100 is skipped, and counted. `head` says that it has no body.
  Answer answer(bool head = false);
  // Whether nothing comes for so long.
  bool is_silent_for(std::chrono::milliseconds time);
  // Whether the server closes (or resets) within our patience; what comes before is dropped.
  bool is_closed();

  void close_sending();
  void close();
  void reset();  // closes with a reset

  int continues = 0;       // how often 100 was seen
  bool was_reset = false;  // the server reset the connection
  bool has_ended() const { return ended_; }
  int descriptor() const { return descriptor_; }

 private:
  bool wait(short events, std::chrono::milliseconds patience) const;
  bool fill();  // more in buffer_

  int descriptor_ = -1;
  std::string buffer_;
  bool ended_ = false;
};

// All answers in these bytes, in their order; 100 is left out. `complete` of the last one says whether it was cut.
std::vector<Answer> answers_in(std::string_view bytes, bool closed);

}  // namespace routing::http
