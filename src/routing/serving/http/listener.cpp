#include "routing/serving/http/listener.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace routing::http {
namespace {

constexpr int kBacklog = 4096;  // the kernel takes less if net.core.somaxconn says so

union SocketAddress {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
};

// The size of what it filled; 0 if the text is no address.
socklen_t fill_address(const std::string& ip, std::uint16_t port, SocketAddress& address) {
  address = {};
  if (::inet_pton(AF_INET, ip.c_str(), &address.ipv4.sin_addr) == 1) {
    address.ipv4.sin_family = AF_INET;
    address.ipv4.sin_port = htons(port);
    return sizeof(sockaddr_in);
  }
  address = {};
  if (::inet_pton(AF_INET6, ip.c_str(), &address.ipv6.sin6_addr) == 1) {
    address.ipv6.sin6_family = AF_INET6;
    address.ipv6.sin6_port = htons(port);
    return sizeof(sockaddr_in6);
  }
  return 0;
}

void require_address(const std::string& ip) {
  SocketAddress address{};
  require<InputError>(fill_address(ip, 0, address) != 0, "the address \"", ip,
                      "\" is neither IPv4 nor IPv6 in digits; 127.0.0.1 is this machine, 0.0.0.0 all its networks");
}

std::string text_of(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.any.sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &address.ipv6.sin6_addr, text.data(), text.size());
    return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(address.ipv6.sin6_port));
  }
  ::inet_ntop(AF_INET, &address.ipv4.sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(address.ipv4.sin_port));
}

const char* remedy(int reason) {
  switch (reason) {
    case EADDRINUSE:
      return "another program has the port; end it, or choose another `port` (0 is any free one)";
    case EACCES:
      return "ports below 1024 are the administrator's; choose a `port` from 1024 on";
    case EADDRNOTAVAIL:
      return "this machine does not have the address; choose one that `ip address` shows";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    default:
      return "choose another address";
  }
}

[[noreturn]] void throw_cannot_listen(const Address& address, int reason) {
  const bool ipv6 = address.ip.find(':') != std::string::npos;
  throw ListenError("cannot listen at " + (ipv6 ? "[" + address.ip + "]" : address.ip) + ":" +
                    std::to_string(address.port) + ": " + std::generic_category().message(reason) + "; " +
                    remedy(reason));
}

void set_option(int descriptor, int level, int name, int value) {
  // Each of them only makes things better; without it the connection works all the same.
  static_cast<void>(::setsockopt(descriptor, level, name, &value, sizeof(value)));
}

int open_spare() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

std::size_t open_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  constexpr std::size_t kUnknown = 64;
  if (!folder) return kUnknown;
  std::size_t count = 0;
  while (::readdir(folder.get()) != nullptr) ++count;
  return count;
}

}  // namespace

bool is_loopback(const std::string& ip) {
  require_address(ip);
  SocketAddress address{};
  if (fill_address(ip, 0, address) == sizeof(sockaddr_in)) return ntohl(address.ipv4.sin_addr.s_addr) >> 24 == 127;
  const in6_addr& wide = address.ipv6.sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&wide) || (IN6_IS_ADDR_V4MAPPED(&wide) && wide.s6_addr[12] == 127);
}

Listener::Listener(const Address& address) {
  require_address(address.ip);
  SocketAddress where{};
  const socklen_t size = fill_address(address.ip, address.port, where);
  ipv6_ = where.any.sa_family == AF_INET6;
  descriptor_ = ::socket(where.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) throw_cannot_listen(address, errno);
  // Not in use, as far as people see it: connections of a server that was here before.
  set_option(descriptor_, SOL_SOCKET, SO_REUSEADDR, 1);
  if (ipv6_) set_option(descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // Linux hands these on to the connections. Tokens go out one by one; and a machine that vanished does not close: a
  // request whose client is there no more would be worked on to its end.
  set_option(descriptor_, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor_, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor_, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(descriptor_, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(descriptor_, IPPROTO_TCP, TCP_KEEPCNT, 3);
  socklen_t length = sizeof(where);
  if (::bind(descriptor_, &where.any, size) != 0 || ::listen(descriptor_, kBacklog) != 0 ||
      ::getsockname(descriptor_, &where.any, &length) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    throw_cannot_listen(address, reason);
  }
  port_ = ntohs(ipv6_ ? where.ipv6.sin6_port : where.ipv4.sin_port);
  spare_ = open_spare();
}

Listener::~Listener() {
  ::close(descriptor_);
  if (spare_ >= 0) ::close(spare_);
}

Listener::Accepted Listener::accept(const std::string& answer) {
  SocketAddress peer{};
  for (;;) {
    socklen_t size = sizeof(peer);
    const int client = ::accept4(descriptor_, &peer.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) return {Outcome::accepted, client, text_of(peer)};
    // The connection is gone already, or its network had trouble: the next one.
    constexpr std::array kOfTheConnection{EINTR,     ECONNABORTED, EPERM,       EPROTO,     ENETDOWN,
                                          EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, ENOPROTOOPT};
    if (std::find(kOfTheConnection.begin(), kOfTheConnection.end(), errno) != kOfTheConnection.end()) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    if (spare_ < 0) {
      spare_ = open_spare();
      return {Outcome::exhausted, -1, {}};
    }
    ::close(spare_);
    const int refused = ::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const bool none_waits = refused < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (refused >= 0) answer_and_close(refused, answer);
    spare_ = open_spare();
    if (none_waits) return {};
    return {refused >= 0 ? Outcome::refused : Outcome::exhausted, -1, {}};
  }
}

void answer_and_close(int descriptor, const std::string& answer) {
  // Whatever became of it: the client is told as well as can be.
  static_cast<void>(::send(descriptor, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  ::shutdown(descriptor, SHUT_WR);
  // What the client has sent already would make the kernel answer with a reset, which takes the answer away again.
  std::array<char, 4096> dropped{};
  constexpr int kMostReads = 16;
  for (int i = 0; i<kMostReads&& ::recv(descriptor, dropped.data(), dropped.size(), MSG_DONTWAIT)> 0; ++i) continue;
  ::close(descriptor);
}

std::size_t make_room_for_descriptors(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const std::size_t open = open_descriptors();
  const rlim_t needed = std::min<rlim_t>(open + wanted, limit.rlim_max);
  if (limit.rlim_cur < needed) {
    const rlimit raised{needed, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur > open ? std::min<std::size_t>(limit.rlim_cur - open, wanted) : 0;
}

}  // namespace routing::http
