#include "serving/http/many_clients.h"

#include "serving/http/client.h"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace routing::http {
namespace {

using Clock = std::chrono::steady_clock;

struct Order {
  std::int64_t step = 0, argument = 0;
};

[[noreturn]] void obey(const std::vector<Child::Step>& steps, int orders, int results) {
  Order order;
  while (::read(orders, &order, sizeof(order)) == static_cast<ssize_t>(sizeof(order))) {
    const std::int64_t result = steps.at(static_cast<std::size_t>(order.step))(order.argument);
    if (::write(results, &result, sizeof(result)) != static_cast<ssize_t>(sizeof(result))) break;
  }
  ::_exit(0);
}

}  // namespace

std::vector<int> Crowd::connect(std::uint16_t port, std::size_t count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> sockets;
  const auto end = Clock::now() + kPatience;
  while (sockets.size() < count && Clock::now() < end) {
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0) break;
    // Nothing of them stays behind in the kernel when they are closed.
    const linger reset{1, 0};
    ::setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    if (::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      sockets.push_back(client);
    } else {
      ::close(client);
    }
  }
  return sockets;
}

bool Crowd::send_to_all(const std::vector<int>& sockets, const std::string& bytes) {
  for (const int client : sockets) {
    if (::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) return false;
  }
  return true;
}

std::size_t Crowd::answered(const std::vector<int>& sockets, const std::string& beginning, std::size_t enough) {
  std::vector<std::string> received(sockets.size());
  std::size_t count = 0;
  for (const auto end = Clock::now() + kPatience; count < enough && Clock::now() < end;) {
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      std::array<char, 4096> bytes{};
      const ssize_t size = ::recv(sockets[i], bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (size <= 0) continue;
      const bool before = received[i].starts_with(beginning);
      received[i].append(bytes.data(), static_cast<std::size_t>(size));
      if (!before && received[i].starts_with(beginning)) ++count;
    }
    pollfd nothing{-1, 0, 0};
    ::poll(&nothing, 1, 1);
  }
  return count;
}

Child::Child(std::vector<Step> steps) {
  std::array<int, 2> orders{}, results{};
  if (::pipe(orders.data()) != 0 || ::pipe(results.data()) != 0) throw std::runtime_error("a test has no pipes");
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("a test has no second process");
  if (process_ == 0) {
    ::close(orders[1]);
    ::close(results[0]);
    obey(steps, orders[0], results[1]);
  }
  ::close(orders[0]);
  ::close(results[1]);
  to_child_ = orders[1];
  from_child_ = results[0];
}

// It ends when nobody can give it orders any more.
Child::~Child() {
  ::close(to_child_);
  ::close(from_child_);
  ::waitpid(process_, nullptr, 0);
}

std::optional<std::int64_t> Child::run(std::size_t step, std::int64_t argument) {
  const Order order{static_cast<std::int64_t>(step), argument};
  if (::write(to_child_, &order, sizeof(order)) != static_cast<ssize_t>(sizeof(order))) return std::nullopt;
  pollfd poll{from_child_, POLLIN, 0};
  constexpr std::chrono::milliseconds kEnough = 3 * kPatience;
  std::int64_t result = 0;
  if (::poll(&poll, 1, static_cast<int>(kEnough.count())) != 1) return std::nullopt;
  if (::read(from_child_, &result, sizeof(result)) != static_cast<ssize_t>(sizeof(result))) return std::nullopt;
  return result;
}

DescriptorLimit::DescriptorLimit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  soft_ = limit.rlim_cur;
  hard_ = limit.rlim_max;
}

DescriptorLimit::~DescriptorLimit() {
  set_soft(soft_);
}

void DescriptorLimit::set_soft(std::size_t limit) const {
  const rlimit changed{limit, hard_};
  if (::setrlimit(RLIMIT_NOFILE, &changed) != 0) throw std::runtime_error("the limit of open files cannot be set");
}

}  // namespace routing::http
