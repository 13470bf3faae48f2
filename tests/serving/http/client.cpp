#include "serving/http/client.h"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace routing::http {
namespace {

std::string small_letters(std::string_view text) {
  std::string small(text);
  for (char& letter : small) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 'a' - 'A');
  }
  return small;
}

// The answer at the beginning of the bytes and its length; no length while it is not whole.
std::pair<Answer, std::optional<std::size_t>> first_answer(std::string_view bytes, bool closed, bool head) {
  Answer answer;
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos || !bytes.starts_with("HTTP/1.1 ")) return {answer, std::nullopt};
  answer.status = std::atoi(std::string(bytes.substr(9, 3)).c_str());
  std::size_t line = bytes.find("\r\n") + 2;
  while (line < end) {
    const std::size_t stop = bytes.find("\r\n", line);
    const std::string_view header = bytes.substr(line, stop - line);
    const std::size_t colon = header.find(": ");
    if (colon == std::string_view::npos) throw std::runtime_error("not a header: " + std::string(header));
    answer.headers[small_letters(header.substr(0, colon))] = header.substr(colon + 2);
    line = stop + 2;
  }
  std::size_t place = end + 4;
  if (head || answer.headers.contains("x-no-body") || answer.status < 200 || answer.status == 204 ||
      answer.status == 304) {
    answer.complete = true;
    return {answer, place};
  }
  if (answer.headers.contains("content-length")) {
    const auto length = static_cast<std::size_t>(std::atoll(answer.headers["content-length"].c_str()));
    answer.body = bytes.substr(place, length);
    answer.complete = answer.body.size() == length;
    if (!answer.complete) return {answer, std::nullopt};
    return {answer, place + length};
  }
  answer.chunked = answer.headers.contains("transfer-encoding");
  if (!answer.chunked) {
    answer.body = bytes.substr(place);
    answer.complete = closed;
    return {answer, closed ? std::optional(bytes.size()) : std::nullopt};
  }
  for (;;) {
    const std::size_t stop = bytes.find("\r\n", place);
    if (stop == std::string_view::npos) return {answer, std::nullopt};
    const std::size_t size = std::strtoul(std::string(bytes.substr(place, stop - place)).c_str(), nullptr, 16);
    if (bytes.size() < stop + 2 + size + 2) return {answer, std::nullopt};
    answer.body += bytes.substr(stop + 2, size);
    place = stop + 2 + size + 2;
    if (bytes.substr(place - 2, 2) != "\r\n") throw std::runtime_error("a chunk does not end where it says");
    if (size != 0) continue;
    answer.complete = true;
    return {answer, place};
  }
}

}  // namespace

std::vector<Answer> answers_in(std::string_view bytes, bool closed) {
  std::vector<Answer> answers;
  while (!bytes.empty()) {
    const auto [answer, length] = first_answer(bytes, closed, false);
    if (answer.status != 100) answers.push_back(answer);
    if (!length) break;
    bytes.remove_prefix(*length);
  }
  return answers;
}

Client::Client(std::uint16_t port, const Options& options) {
  descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) throw std::runtime_error("a test has no descriptor left");
  if (options.receive_buffer > 0) {
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &options.receive_buffer, sizeof(options.receive_buffer));
  }
  sockaddr_in address{};
  if (options.source > 0) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0x7f010000U | (options.source & 0xffffU));
    const int port_later = 1;
    ::setsockopt(descriptor_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &port_later, sizeof(port_later));
    ::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    throw std::runtime_error("cannot connect: " + std::to_string(reason));
  }
}

Client::~Client() {
  close();
}

Client::Client(Client&& other) noexcept
    : continues(other.continues),
      was_reset(other.was_reset),
      descriptor_(std::exchange(other.descriptor_, -1)),
      buffer_(std::move(other.buffer_)),
      ended_(other.ended_) {}

Client& Client::operator=(Client&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(buffer_, other.buffer_);
  std::swap(ended_, other.ended_);
  std::swap(continues, other.continues);
  std::swap(was_reset, other.was_reset);
  return *this;
}

bool Client::wait(short events, std::chrono::milliseconds patience) const {
  pollfd poll{descriptor_, events, 0};
  return ::poll(&poll, 1, static_cast<int>(patience.count())) == 1;
}

bool Client::send(std::string_view bytes, std::chrono::milliseconds patience) {
  while (!bytes.empty()) {
    if (!wait(POLLOUT, patience)) return false;
    const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool Client::fill() {
  const std::string more = receive_some();
  buffer_ += more;
  return !more.empty();
}

std::string Client::receive_some(std::chrono::milliseconds patience) {
  if (ended_ || !wait(POLLIN, patience)) return "";
  std::array<char, 65536> bytes{};
  const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  if (count <= 0) {
    ended_ = true;
    was_reset = count < 0;
    return "";
  }
  return {bytes.data(), static_cast<std::size_t>(count)};
}

std::string Client::receive(std::size_t bytes) {
  while (buffer_.size() < bytes && fill()) continue;
  std::string taken = buffer_.substr(0, bytes);
  buffer_.erase(0, taken.size());
  return taken;
}

std::string Client::receive_until(std::string_view text) {
  std::size_t place = std::string::npos;
  while ((place = buffer_.find(text)) == std::string::npos && fill()) continue;
  return receive(place == std::string::npos ? buffer_.size() : place + text.size());
}

std::string Client::receive_all() {
  while (fill()) continue;
  return std::exchange(buffer_, {});
}

Answer Client::answer(bool head) {
  for (;;) {
    const auto [answer, length] = first_answer(buffer_, ended_, head);
    if (length) {
      buffer_.erase(0, *length);
      if (answer.status != 100) return answer;
      ++continues;
    } else if (!fill()) {
      return first_answer(buffer_, ended_, head).first;
    }
  }
}

bool Client::is_silent_for(std::chrono::milliseconds time) {
  return buffer_.empty() && !wait(POLLIN, time);
}

bool Client::is_closed() {
  receive_all();
  return ended_;
}

void Client::close_sending() {
  ::shutdown(descriptor_, SHUT_WR);
}

void Client::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void Client::reset() {
  const linger now{1, 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close();
}

}  // namespace routing::http
