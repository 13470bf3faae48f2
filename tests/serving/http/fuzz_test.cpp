// Requests that somebody else might have written: valid ones, changed at random, over real sockets. The server must
// live, answer in HTTP, answer a good request afterwards, and be back where it was when all are gone.
//
// ROUTING_FUZZ_REQUESTS and ROUTING_FUZZ_SEED choose more of them; scripts/fuzz-http does.
#include "routing/core/random.h"
#include "serving/http/test_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <malloc.h>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace routing::http::fuzz_test {
namespace {

using namespace std::chrono_literals;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

const std::vector<std::string>& valid_streams() {
  static const std::vector<std::string> streams{
      get("/"),
      get("/v1/models?after=3&x=a%20b", "Accept: */*\r\nUser-Agent: curl/7.88.1\r\n"),
      get("/runs/exp%2Fa/metrics", "Connection: close\r\n"),
      post("/echo", "{\"prompt\": \"A word is \", \"max_tokens\": 40}", "Content-Type: application/json\r\n"),
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
      "chunked\r\n\r\n5\r\nhello\r\n10;a=b\r\n0123456789abcdef\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nTrailer: t\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbody",
      "GET / HTTP/1.0\r\n\r\n",
      "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      "HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: h\r\nOrigin: http://h\r\nAccess-Control-Request-Method: POST\r\n\r\n",
      "GET http://host:80/absolute?q HTTP/1.1\r\nHost: other\r\n\r\n",
      get("/stream") + get("/later") + post("/echo", "xyz") + get("/later") + get("/last"),
      get("/later", "Authorization: Bearer 0123456789abcdef\r\n"),
  };
  return streams;
}

const std::vector<std::string>& tokens() {
  static const std::vector<std::string> all{"\r\n",
                                            "\n",
                                            "\r",
                                            "\r\n\r\n",
                                            " ",
                                            "\t",
                                            ":",
                                            ";",
                                            "%",
                                            "%00",
                                            "%2e%2e",
                                            "/../",
                                            std::string(1, '\0'),
                                            "\x7f",
                                            "\xff",
                                            "Content-Length: 5\r\n",
                                            "Content-Length: 99999999999999999999\r\n",
                                            "Content-Length: -1\r\n",
                                            "Transfer-Encoding: chunked\r\n",
                                            "Transfer-Encoding: gzip\r\n",
                                            "Host: h\r\n",
                                            "Expect: 100-continue\r\n",
                                            "Connection: close\r\n",
                                            "Connection: keep-alive\r\n",
                                            "Upgrade: h2c\r\n",
                                            "0\r\n\r\n",
                                            "ffffffffffffffff\r\n",
                                            "1\r\n",
                                            " HTTP/1.1\r\n",
                                            " HTTP/2.0\r\n",
                                            "GET ",
                                            "HEAD ",
                                            "POST ",
                                            "X-Long: " + std::string(3000, 'a') + "\r\n",
                                            std::string(5000, '/'),
                                            "\r\n folded"};
  return all;
}

class Fuzzer {
 public:
  // Each case has its own stream: it can be run again alone.
  Fuzzer(std::uint64_t seed, std::uint64_t number) : random_(seed, "http fuzz", {number}) {}

  std::size_t below(std::size_t bound) { return random_.below(static_cast<std::uint32_t>(bound)); }
  const std::string& one_of(const std::vector<std::string>& texts) { return texts[below(texts.size())]; }

  std::string bytes() {
    std::string text = one_of(valid_streams());
    for (std::size_t changes = below(6); changes > 0; --changes) change(text);
    return text;
  }

 private:
  void change(std::string& text) {
    const std::size_t place = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - place, below(20));
    switch (below(8)) {
      case 0:
        if (place < text.size()) text[place] = static_cast<char>(below(256));
        break;
      case 1:
        if (place < text.size()) text[place] = static_cast<char>(text[place] ^ (1 << below(8)));
        break;
      case 2:
        text.insert(place, 1, static_cast<char>(below(256)));
        break;
      case 3:
        text.erase(place, length);
        break;
      case 4:
        text.insert(place, text.substr(place, length));
        break;
      case 5:
        text.insert(place, one_of(tokens()));
        break;
      case 6:
        text.replace(place, length, one_of(tokens()));
        break;
      default:
        text = below(3) == 0 ? text.substr(0, place) : text + one_of(valid_streams());
    }
  }

  RandomStream random_;
};

// Answers what comes in from another thread, in pieces.
class LateAnswers {
 public:
  LateAnswers() : thread_([this] { work(); }) {}
  ~LateAnswers() {
    add(nullptr);
    thread_.join();
  }
  LateAnswers(const LateAnswers&) = delete;
  LateAnswers& operator=(const LateAnswers&) = delete;
  void add(std::shared_ptr<Reply> reply) {
    const std::lock_guard lock(mutex_);
    replies_.push_back(std::move(reply));
    changed_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !replies_.empty(); });
      const std::shared_ptr<Reply> reply = std::move(replies_.front());
      replies_.pop_front();
      lock.unlock();
      if (!reply) return;
      reply->when_gone([reply] {});  // a circle that the server has to open
      reply->begin({.content_type = "text/event-stream"});
      for (int i = 0; i < 3; ++i) reply->write("data: " + std::to_string(i) + "\n\n");
      reply->end();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Reply>> replies_;
  std::thread thread_;
};

class Fuzz : public testing::Test {
 protected:
  ServerOptions options() {
    ServerOptions options;
    options.limits = {.body_bytes = 100000,
                      .seconds_to_read_header = 300,
                      .seconds_to_read_body = 300,
                      .seconds_idle = 300,
                      .seconds_to_write = 300};
    options.handler = [this](const Request& request, const std::shared_ptr<Reply>& reply) {
      if (request.method == "HEAD") reply->add_headers({{"X-No-Body", "1"}});
      if (request.path == "/later") return late_.add(reply);
      if (request.path != "/stream") return reply->send({.content_type = "text/plain", .body = one_line(request)});
      reply->begin({});
      reply->write("a piece");
      reply->end();
    };
    return options;
  }

  // What is wrong with these bytes as answers; empty if nothing is.
  static std::string fault_of(const std::string& bytes) {
    static const std::set<int> expected{200, 400, 405, 413, 414, 417, 431, 501, 505};
    const std::vector<Answer> answers = answers_in(bytes, true);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!expected.contains(answers[i].status)) return "status " + std::to_string(answers[i].status);
      // Of a refused HEAD the head alone goes out.
      const bool may_be_cut = i + 1 == answers.size() && answers[i].status >= 400 && answers[i].body.empty();
      if (!answers[i].complete && !may_be_cut) return "an answer that breaks off";
    }
    return "";
  }

  void good_request() {
    Client client = server_.client();
    ASSERT_TRUE(client.send(post("/good", "body", "Connection: close\r\n")));
    ASSERT_EQ(client.answer().body, "POST /good body");
  }

  // One client, one way to leave.
  void run_case(std::uint64_t seed, std::uint64_t number) {
    Fuzzer fuzzer(seed, number);
    const std::string bytes = fuzzer.bytes();
    Client client(server_->port(), {.source = static_cast<std::uint32_t>(number)});
    const std::size_t pieces = 1 + fuzzer.below(2) * fuzzer.below(4);
    bool taken = true;
    for (std::size_t i = 0; i < pieces; ++i) {
      const std::size_t begin = bytes.size() * i / pieces, end = bytes.size() * (i + 1) / pieces;
      taken = taken && client.send(std::string_view(bytes).substr(begin, end - begin));
    }
    switch (fuzzer.below(10)) {
      case 0:
        return client.reset();
      case 1:
        return client.close();
      case 2:
        client.receive_some(5ms);
        return client.reset();
      default:
        client.close_sending();
    }
    const std::string answer = client.receive_all();
    std::string fault = client.has_ended() ? fault_of(answer) : "the connection stays open";
    if (fault.empty() && client.was_reset && taken) fault = "a reset";
    if (!fault.empty() && ++faults_ < 10) {
      ADD_FAILURE() << "seed " << seed << ", case " << number << ": " << fault << "\n" << bytes << "\n---\n" << answer;
    }
  }

  void run_cases(std::uint64_t seed, std::uint64_t begin, std::uint64_t end) {
    constexpr std::uint64_t kThreads = 2, kBetweenGoodOnes = 500;
    std::vector<std::thread> threads;
    for (std::uint64_t first = 0; first < kThreads; ++first) {
      threads.emplace_back([=, this] {
        for (std::uint64_t number = begin + first; number < end && faults_ < 10; number += kThreads) {
          try {
            run_case(seed, number);
            if (number % kBetweenGoodOnes == 0) good_request();
          } catch (const std::exception& error) {
            ++faults_;
            ADD_FAILURE() << "seed " << seed << ", case " << number << ": " << error.what();
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(becomes_true([&] { return server_->counters().connections_open == 0; }));
    good_request();
    EXPECT_TRUE(becomes_true([&] { return server_->counters().connections_open == 0; }));
  }

  LateAnswers late_;
  TestServer server_{options()};
  std::atomic<int> faults_{0};
};

TEST_F(Fuzz, OfRequestsIsSurvivedAndLeavesNothingBehind) {
  const std::uint64_t seed = number_from_environment("ROUTING_FUZZ_SEED", 1);
  const std::uint64_t requests = number_from_environment("ROUTING_FUZZ_REQUESTS", 4000);
  run_cases(seed, 0, requests / 4);
  const std::size_t before = ::mallinfo2().uordblks;
  run_cases(seed, requests / 4, requests);
  const std::size_t after = ::mallinfo2().uordblks;
  // One forgotten connection in a hundred would be 30 kB already with the fewest requests.
  EXPECT_LT(after, before + 20000);
  EXPECT_TRUE(server_.problems().empty());
  const Counters counters = server_->counters();
  EXPECT_GT(counters.answers[2], requests / 4) << "many are still valid";
  EXPECT_GT(counters.answers[4], requests / 4) << "and many are not";
  RecordProperty("answered", std::to_string(counters.answers[2]) + " " + std::to_string(counters.answers[4]));
}

}  // namespace
}  // namespace routing::http::fuzz_test
