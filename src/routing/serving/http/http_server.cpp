#include "routing/serving/http/http_server.h"

#include "routing/serving/http/connection.h"
#include "routing/serving/http/core.h"
#include "routing/serving/http/listener.h"
#include "routing/serving/http/wire/response_text.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace routing::http {
namespace {

namespace asio = boost::asio;

// Clients over the limit that are told so properly; more are only told.
constexpr std::size_t kRefusedAtOnce = 128;
// Of the process for everything else: models, files, engines.
constexpr std::size_t kOtherDescriptors = 64;
constexpr int kAcceptedAtOnce = 64;
constexpr double kPauseWithoutDescriptors = 0.1;

void check_limits(const Limits& limits) {
  require<InputError>(limits.header_bytes >= 256 && limits.header_bytes <= (1U << 30), "`header_bytes` is ",
                      limits.header_bytes, ", but must be 256 to 1073741824");
  require<InputError>(limits.connections >= 1, "`connections` is 0, but must be at least 1");
  for (const double seconds : {limits.seconds_to_read_header, limits.seconds_to_read_body, limits.seconds_idle,
                               limits.seconds_to_write, limits.seconds_to_linger}) {
    constexpr double kYear = 365.0 * 24 * 3600;
    require<InputError>(seconds > 0 && seconds <= kYear, "a limit of time is ", seconds,
                        " seconds, but must be above 0, and a year at most");
  }
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(ServerOptions options)
      : core_(std::move(options)),
        listener_(std::make_unique<Listener>(core_.options.address)),
        port_(listener_->port()),
        poll_(core_.io, listener_->descriptor()) {
    const std::size_t wanted = core_.options.limits.connections + kRefusedAtOnce + kOtherDescriptors;
    const std::size_t room = make_room_for_descriptors(wanted);
    const std::size_t reserve = std::min(kRefusedAtOnce + kOtherDescriptors, room / 2);
    connection_limit_ = std::max<std::size_t>(1, std::min(core_.options.limits.connections, room - reserve));
    refusals_ = std::min(kRefusedAtOnce, reserve / 2);
    Response busy = core_.error_response(503, "too many connections; try again in a second");
    busy_text_ = head_text(busy, {{"Retry-After", "1"}}, {.length = busy.body.size(), .close = true}) + busy.body;
  }

  ~Impl() {
    // There are some only if run() ended with an exception.
    close_all();
    // The listener closes its socket itself.
    if (listener_) poll_.release();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void run() {
    const auto work = asio::make_work_guard(core_.io);
    wait_to_accept();
    core_.io.run();
    // Nothing is sent any more; who waits for an answer's client learns that it is gone.
    close_all();
    core_.mailbox->close();
  }

  void stop_accepting() {
    asio::post(core_.io, [this] {
      if (std::exchange(core_.stopping, true)) return;
      poll_.release();
      listener_.reset();
      for (const auto& connection : all_connections()) connection->finish_soon();
      core_.end_if_done();
    });
  }

  void stop() {
    asio::post(core_.io, [this] { core_.io.stop(); });
  }

  std::uint16_t port() const { return port_; }
  std::size_t connection_limit() const { return connection_limit_; }
  const Tallies& tallies() const { return core_.tallies; }

 private:
  // Closing one changes the list.
  std::vector<std::shared_ptr<Connection>> all_connections() const {
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(core_.connections.size());
    for (const auto& [key, connection] : core_.connections) all.push_back(connection);
    return all;
  }

  void close_all() {
    for (const auto& connection : all_connections()) connection->close();
  }

  void wait_to_accept() {
    if (core_.stopping) return;
    poll_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (!error && !core_.stopping) accept_waiting();
    });
  }

  // Not all at once: those who are here want to be served as well.
  void accept_waiting() {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      Listener::Accepted accepted = listener_->accept(busy_text_);
      switch (accepted.outcome) {
        case Listener::Outcome::none_waits:
          return wait_to_accept();
        case Listener::Outcome::accepted:
          without_descriptors_ = false;
          core_.guarded("accepting a connection", [&] { welcome(accepted); });
          break;
        case Listener::Outcome::refused:
          tell_about_descriptors();
          ++core_.tallies.connections_refused;
          break;
        case Listener::Outcome::exhausted:
          tell_about_descriptors();
          return pause_accepting();
      }
    }
    wait_to_accept();
  }

  void welcome(Listener::Accepted& accepted) {
    const std::size_t open = core_.connections.size();
    const bool too_many = open >= connection_limit_;
    ++core_.tallies.connections_total;
    if (too_many) ++core_.tallies.connections_refused;
    if (open >= connection_limit_ + refusals_) return answer_and_close(accepted.descriptor, busy_text_);
    asio::ip::tcp::socket socket(core_.io);
    boost::system::error_code error;
    socket.assign(listener_->is_ipv6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), accepted.descriptor, error);
    if (error) {
      answer_and_close(accepted.descriptor, busy_text_);
      throw Error("a connection could not be watched: " + error.message());
    }
    const auto connection = std::make_shared<Connection>(core_, std::move(socket), std::move(accepted.peer));
    core_.connections.emplace(connection.get(), connection);
    ++core_.tallies.connections_open;
    too_many ? connection->start_refusing() : connection->start();
  }

  void tell_about_descriptors() {
    if (std::exchange(without_descriptors_, true)) return;
    core_.tell("clients are refused because no descriptor is left; raise the limit of open files (ulimit -n)");
  }

  void pause_accepting() {
    pause_.expires_at(Core::in_seconds(kPauseWithoutDescriptors));
    pause_.async_wait([this](const boost::system::error_code& error) {
      if (!error) wait_to_accept();
    });
  }

  Core core_;
  std::unique_ptr<Listener> listener_;
  std::uint16_t port_;
  asio::posix::stream_descriptor poll_;
  asio::steady_timer pause_{core_.io};
  std::size_t connection_limit_ = 0, refusals_ = 0;
  std::string busy_text_;
  bool without_descriptors_ = false;
};

Server::Server(ServerOptions options) {
  require<InputError>(static_cast<bool>(options.handler), "a server needs a handler");
  check_limits(options.limits);
  impl_ = std::make_unique<Impl>(std::move(options));
}
Server::~Server() = default;

std::uint16_t Server::port() const {
  return impl_->port();
}
std::size_t Server::connection_limit() const {
  return impl_->connection_limit();
}
void Server::run() {
  impl_->run();
}
void Server::stop_accepting() {
  impl_->stop_accepting();
}
void Server::stop() {
  impl_->stop();
}

Counters Server::counters() const {
  const Tallies& tallies = impl_->tallies();
  Counters counters{.connections_open = tallies.connections_open,
                    .connections_total = tallies.connections_total,
                    .connections_refused = tallies.connections_refused,
                    .requests = tallies.requests,
                    .bytes_in = tallies.bytes_in,
                    .bytes_out = tallies.bytes_out,
                    .timeouts = tallies.timeouts,
                    .gone = tallies.gone};
  std::copy(tallies.answers.begin(), tallies.answers.end(), counters.answers.begin());
  return counters;
}

}  // namespace routing::http
