#include "routing/serving/http/core.h"

#include "routing/serving/http/connection.h"
#include "routing/serving/http/wire/response_text.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>
#include <vector>

namespace routing::http {
namespace {

Response plain_error(int status, const std::string& message) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = message + "\n"};
}

}  // namespace

Core::Core(ServerOptions given) : options(std::move(given)) {
  mailbox = std::make_shared<Mailbox>([this] { boost::asio::post(io, [this] { on_mail(); }); });
}

// Connections go before what they use, and nobody wakes the I/O thread any more.
Core::~Core() {
  mailbox->close();
  connections.clear();
}

// Called once for all mail that comes until read_mail().
void Core::on_mail() {
  if (std::chrono::steady_clock::now() >= next_mail_) return read_mail();
  mail_timer_.expires_at(next_mail_);
  mail_timer_.async_wait([this](const boost::system::error_code&) { read_mail(); });
}

void Core::read_mail() {
  const std::vector<std::shared_ptr<Exchange>> mail = mailbox->take();
  next_mail_ = std::chrono::steady_clock::now() + pause_after_mail(mail.size());
  for (const std::shared_ptr<Exchange>& exchange : mail) {
    if (exchange->connection != nullptr) {
      exchange->connection->on_news();
    } else if (const std::function<void()> late = exchange->take_late_function()) {
      guarded("what was to happen when a client is gone", late);
    }
  }
}

void Core::guarded(const std::string& what, const std::function<void()>& action) const {
  try {
    action();
  } catch (const std::exception& error) {
    tell(what + " failed: " + error.what());
  }
}

Core::Time Core::in_seconds(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

void Core::set_deadline(Connection* connection, Time time) {
  deadlines_.set(connection, time);
  arm_timer();
}

// One timer for all. It is set only if it would come too late, and may come too early: deadlines are put off far more
// often than they pass.
void Core::arm_timer() {
  const std::optional<Time> earliest = deadlines_.earliest();
  if (!earliest || (armed_for_ && *armed_for_ <= *earliest)) return;
  armed_for_ = earliest;
  timer_.expires_at(*earliest);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // it was set anew
    armed_for_.reset();
    const Time now = std::chrono::steady_clock::now();
    while (Connection* const due = deadlines_.take_due(now)) {
      const std::shared_ptr<Connection> connection = due->shared_from_this();
      connection->on_deadline();
    }
    arm_timer();
  });
}

void Core::forget(Connection* connection) {
  if (connections.erase(connection) > 0) --tallies.connections_open;
  end_if_done();
}

void Core::end_if_done() {
  if (stopping && connections.empty()) io.stop();
}

void Core::tell(const std::string& problem) const {
  if (!options.problem) return;
  try {
    options.problem(problem);
  } catch (const std::exception&) {
    // Who wants to hear of problems has one; there is nobody else to tell.
    return;
  }
}

Response Core::error_response(int status, const std::string& message) const {
  if (!options.error_body) return plain_error(status, message);
  try {
    Response response = options.error_body(status, message);
    check_response(response);
    return response;
  } catch (const std::exception& error) {
    tell("an error could not be answered: " + std::string(error.what()));
    return plain_error(status, message);
  }
}

}  // namespace routing::http
