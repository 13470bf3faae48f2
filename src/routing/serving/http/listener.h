// The socket that clients connect to, and the descriptors that they cost.
#pragma once

#include "routing/serving/http/http_server.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace routing::http {

// Accepts until told otherwise, also when no descriptor is left: then a spare one is given up for a moment, so that the
// client gets an answer. Without that the connection would wait in the kernel, and poll would report it for ever.
class Listener {
 public:
  // Listens. ListenError says which address, why, and what to do.
  explicit Listener(const Address& address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // For poll; readable when a client waits. Does not block.
  int descriptor() const { return descriptor_; }
  bool is_ipv6() const { return ipv6_; }
  std::uint16_t port() const { return port_; }

  enum class Outcome {
    accepted,
    none_waits,
    refused,    // for want of a descriptor
    exhausted,  // likewise, and even the spare one is gone: try again later
  };
  struct Accepted {
    Outcome outcome = Outcome::none_waits;
    int descriptor = -1;  // of `accepted`: does not block, is closed on exec, belongs to the caller
    std::string peer;
  };
  // `answer` is what a client hears that is refused.
  Accepted accept(const std::string& answer);

 private:
  int descriptor_ = -1;
  int spare_ = -1;
  bool ipv6_ = false;
  std::uint16_t port_ = 0;
};

// Writes what fits at once, closes.
void answer_and_close(int descriptor, const std::string& answer);

// Raises the soft limit of open files so that there is room for so many more, if the hard limit allows. Returns for how
// many there is room.
std::size_t make_room_for_descriptors(std::size_t wanted);

}  // namespace routing::http
