// A server on loopback for the length of a test.
#pragma once

#include "routing/serving/http/http_server.h"
#include "serving/http/client.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace routing::http {

// What a request is, in one line for comparisons: "POST /path?query body".
inline std::string one_line(const Request& request) {
  return request.method + " " + request.path + (request.query.empty() ? "" : "?" + request.query) + " " + request.body;
}

class TestServer {
 public:
  using Handler = std::function<void(Request, std::shared_ptr<Reply>)>;

  // The handler of the options, or one that answers with one_line().
  explicit TestServer(ServerOptions options = {}) {
    if (!options.handler) {
      options.handler = [](const Request& request, const std::shared_ptr<Reply>& reply) {
        reply->send({.content_type = "text/plain", .body = one_line(request)});
      };
    }
    options.problem = [this](const std::string& problem) {
      const std::lock_guard lock(mutex_);
      problems_.push_back(problem);
    };
    server_ = std::make_unique<Server>(std::move(options));
    thread_ = std::thread([this] { server_->run(); });
  }
  explicit TestServer(Handler handler) : TestServer(ServerOptions{.handler = std::move(handler)}) {}
  TestServer(Limits limits, Handler handler)
      : TestServer(ServerOptions{.limits = limits, .handler = std::move(handler)}) {}
  ~TestServer() { stop(); }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  // run() has returned afterwards.
  void stop() {
    if (server_ && thread_.joinable()) {
      server_->stop();
      thread_.join();
    }
  }
  void join() { thread_.join(); }  // after stop_accepting()
  void destroy() {
    stop();
    server_.reset();
  }

  Server& operator*() { return *server_; }
  Server* operator->() { return server_.get(); }
  Client client(int receive_buffer = 0) const { return Client(server_->port(), {.receive_buffer = receive_buffer}); }
  std::vector<std::string> problems() const {
    const std::lock_guard lock(mutex_);
    return problems_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> problems_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// Whether it becomes true before our patience ends.
template <class Condition>
bool becomes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// Replies that a test answers when it likes.
class HeldReplies {
 public:
  TestServer::Handler handler() {
    return [this](Request request, std::shared_ptr<Reply> reply) {
      const std::lock_guard lock(mutex_);
      requests_.push_back(std::move(request));
      replies_.push_back(std::move(reply));
    };
  }
  // The reply to the request of this number; waits for it. Null if it does not come.
  std::shared_ptr<Reply> get(std::size_t number) {
    if (!becomes_true([&] { return count() > number; })) return nullptr;
    const std::lock_guard lock(mutex_);
    return replies_[number];
  }
  Request request(std::size_t number) {
    const std::lock_guard lock(mutex_);
    return requests_.at(number);
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return replies_.size();
  }
  void drop_all() {
    std::vector<std::shared_ptr<Reply>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(replies_);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<std::shared_ptr<Reply>> replies_;
};

inline std::string get(const std::string& target, const std::string& headers = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}
inline std::string post(const std::string& target, const std::string& body, const std::string& headers = "") {
  return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}

}  // namespace routing::http
