// Time: clients that dawdle, and servers that are told to stop. The limits of a test are short, its patience is long;
// what must not happen too early is compared with the clock, what must happen is waited for.
#include "serving/http/test_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace routing::http::deadlines_and_ends_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Only the limit that is tested is short.
Limits patient() {
  return {.seconds_to_read_header = 300, .seconds_to_read_body = 300, .seconds_idle = 300, .seconds_to_write = 300};
}

// A byte every 20 ms for as long as it is taken.
void dawdle(Client& client, const std::string& bytes) {
  const auto end = Clock::now() + kPatience;
  for (std::size_t i = 0; Clock::now() < end; ++i) {
    if (!client.send(bytes.substr(i % bytes.size(), 1)) || !client.is_silent_for(20ms)) return;
  }
}

TEST(SlowLoris, IsCutOffInTheHeaderHoweverOftenItSends) {
  Limits limits = patient();
  limits.seconds_to_read_header = 0.3;
  TestServer server(limits, {});
  Client client = server.client();
  client.send("GET / HTTP/1.1\r\nHost: h\r\n");
  const auto begin = Clock::now();
  dawdle(client, "X-Header: value\r\n");
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 408);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_GE(Clock::now() - begin, 200ms) << "not before its time";
  EXPECT_LT(Clock::now() - begin, kPatience / 2);
  EXPECT_EQ(server->counters().timeouts, 1U);
  EXPECT_TRUE(client.is_closed());
}

TEST(SlowLoris, IsCutOffInTheBodyHoweverOftenItSends) {
  Limits limits = patient();
  limits.seconds_to_read_body = 0.3;
  TestServer server(limits, {});
  for (const std::string framing : {"Content-Length: 100000", "Transfer-Encoding: chunked"}) {
    Client client = server.client();
    client.send("POST / HTTP/1.1\r\nHost: h\r\n" + framing + "\r\n\r\n");
    const auto begin = Clock::now();
    dawdle(client, "1\r\nx\r\n");
    EXPECT_EQ(client.answer().status, 408) << framing;
    EXPECT_GE(Clock::now() - begin, 200ms);
    EXPECT_LT(Clock::now() - begin, kPatience / 2);
  }
  EXPECT_EQ(server->counters().timeouts, 2U);
}

TEST(SlowLoris, OfEmptyLinesIsCutOffAsIdle) {
  Limits limits = patient();
  limits.seconds_idle = 0.3;
  TestServer server(limits, {});
  Client client = server.client();
  dawdle(client, "\r\n");
  EXPECT_TRUE(client.is_closed());
}

TEST(SlowLoris, DoesNotHoldUpOthers) {
  TestServer server(patient(), {});
  std::vector<Client> slow;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(server.client());
    slow.back().send(i % 2 == 0 ? "GET / HTTP/1.1\r\nHos"
                                : "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf");
  }
  Client client = server.client();
  client.send(get("/good"));
  EXPECT_EQ(client.answer().body, "GET /good ");
}

TEST(Deadlines, OfARequestBeginWithItNotWithTheOneBefore) {
  Limits limits = patient();
  limits.seconds_to_read_header = 0.5;
  TestServer server(limits, {});
  Client client = server.client();
  std::this_thread::sleep_for(700ms);
  client.send(get("/1"));
  EXPECT_EQ(client.answer().status, 200) << "an early connection is idle, not slow";
  std::this_thread::sleep_for(700ms);
  client.send(get("/2"));
  EXPECT_EQ(client.answer().status, 200);
  client.send("G");
  EXPECT_EQ(client.answer().status, 408);
}

TEST(Deadlines, CloseIdleConnectionsWithoutAWord) {
  Limits limits = patient();
  limits.seconds_idle = 0.3;
  TestServer server(limits, {});
  Client fresh = server.client();
  Client used = server.client();
  used.send(get("/"));
  EXPECT_EQ(used.answer().status, 200);
  EXPECT_EQ(fresh.receive_all(), "");
  EXPECT_EQ(used.receive_all(), "");
  EXPECT_FALSE(used.was_reset);
  EXPECT_EQ(server->counters().timeouts, 0U) << "nothing went wrong";
}

TEST(Deadlines, DoNotCountWhileTheServerThinks) {
  HeldReplies held;
  TestServer server(
      Limits{
          .seconds_to_read_header = 0.05, .seconds_to_read_body = 30, .seconds_idle = 0.05, .seconds_to_write = 0.05},
      held.handler());
  Client client = server.client();
  // Under load the short limits may hit before the request is there.
  ASSERT_TRUE(becomes_true([&] {
    client = server.client();
    client.send(post("/", "body"));
    return becomes_true([&] { return held.count() > 0 || server->counters().connections_open == 0; }) &&
           held.count() > 0;
  }));
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(held.get(held.count() - 1)->gone());
  held.get(held.count() - 1)->send({.body = "late"});
  EXPECT_EQ(client.answer().body, "late");
}

TEST(Deadlines, EndAnAnswerThatIsNotTaken) {
  Limits limits = patient();
  limits.seconds_to_write = 0.3;
  HeldReplies held;
  TestServer server(limits, held.handler());
  Client client = server.client(4096);
  client.send(get("/"));
  const auto reply = held.get(0);
  std::atomic<int> calls{0};
  reply->when_gone([&] { ++calls; });
  const auto begin = Clock::now();
  reply->send({.body = std::string(64 << 20, 'x')});
  EXPECT_TRUE(becomes_true([&] { return calls == 1; }));
  EXPECT_GE(Clock::now() - begin, 300ms);
  EXPECT_EQ(server->counters().timeouts, 1U);
  EXPECT_TRUE(becomes_true([&] { return server->counters().connections_open == 0; }));
}

// It reads a little every 20 ms: that is no reason to wait for ever.
TEST(Deadlines, EndAnAnswerThatIsTakenDropByDrop) {
  Limits limits = patient();
  limits.seconds_to_write = 0.3;
  HeldReplies held;
  TestServer server(limits, held.handler());
  Client client = server.client(4096);
  client.send(get("/"));
  held.get(0)->send({.body = std::string(64 << 20, 'x')});
  const auto end = Clock::now() + kPatience;
  while (Clock::now() < end && server->counters().timeouts == 0) {
    char byte = 0;
    ASSERT_LE(::recv(client.descriptor(), &byte, 1, MSG_DONTWAIT), 1);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(server->counters().timeouts, 1U);
}

TEST(Deadlines, OfWritingLetAStreamGoOnThatIsTaken) {
  Limits limits = patient();
  limits.seconds_to_write = 0.2;
  limits.unsent_bytes = 64 << 20;
  HeldReplies held;
  TestServer server(limits, held.handler());
  Client client = server.client();
  client.send(get("/"));
  std::string body;
  std::thread reader([&] { body = client.answer().body; });
  const auto reply = held.get(0);
  reply->begin({});
  const auto end = Clock::now() + 1s;  // several deadlines long
  std::size_t written = 0;
  while (Clock::now() < end) {
    ASSERT_TRUE(reply->write(std::string(1000, 'x')));
    written += 1000;
    std::this_thread::sleep_for(1ms);
  }
  reply->end();
  reader.join();
  EXPECT_EQ(body.size(), written);
}

TEST(Stopping, FinishesWhatRunsAndTakesNothingNew) {
  HeldReplies held;
  TestServer server(held.handler());
  Client idle = server.client();
  idle.send(get("/idle"));
  held.get(0)->send({});
  EXPECT_EQ(idle.answer().status, 200);
  Client fresh = server.client();
  Client running = server.client();
  running.send(get("/running"));
  const auto reply = held.get(1);
  Client streaming = server.client();
  streaming.send(get("/streaming"));
  const auto stream = held.get(2);
  stream->begin({});
  stream->write("one ");
  Client sending = server.client();
  sending.send("GET /sending HTTP/1.1\r\nHo");
  ASSERT_TRUE(becomes_true([&] { return server->counters().connections_open == 5; }));
  streaming.receive_until("one ");
  ASSERT_TRUE(becomes_true([&] { return server->counters().bytes_in >= 3 * get("/").size() + 24; }));

  server->stop_accepting();
  server->stop_accepting();
  EXPECT_TRUE(idle.is_closed());
  EXPECT_TRUE(fresh.is_closed());
  EXPECT_TRUE(becomes_true([&] {
    try {
      Client client = server.client();
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  })) << "nobody listens";

  sending.send("st: h\r\n\r\n");
  const auto last = held.get(3);
  ASSERT_TRUE(last) << "what has begun is read to its end";
  last->send({.body = "sent"});
  const Answer answer = sending.answer();
  EXPECT_EQ(answer.body, "sent");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(sending.is_closed());
  reply->send({.body = "ran"});
  EXPECT_EQ(running.answer().headers.at("connection"), "close");
  stream->write("two");
  stream->end();
  EXPECT_NE(streaming.receive_all().find("two\r\n0\r\n\r\n"), std::string::npos);
  running.close();
  server.join();
  EXPECT_EQ(server->counters().connections_open, 0U);
}

TEST(Stopping, WithNothingToDoIsDoneAtOnce) {
  TestServer server;
  server->stop_accepting();
  server.join();
}

TEST(Stopping, AtOnceTellsWhoIsInTheMiddle) {
  HeldReplies held;
  TestServer server(held.handler());
  std::vector<Client> clients;
  std::atomic<int> calls{0};
  for (std::size_t i = 0; i < 10; ++i) {
    clients.push_back(server.client());
    clients.back().send(get("/"));
    held.get(i)->when_gone([&] { ++calls; });
  }
  server.stop();
  EXPECT_EQ(calls, 10);
  for (Client& client : clients) EXPECT_TRUE(client.is_closed());
}

TEST(Stopping, AfterStopAcceptingCutsWhatStillRuns) {
  HeldReplies held;
  TestServer server(held.handler());
  Client client = server.client();
  client.send(get("/"));
  const auto reply = held.get(0);
  server->stop_accepting();
  server.stop();
  EXPECT_TRUE(reply->gone());
}

TEST(Stopping, BeforeRunIsSeenByRun) {
  Server server({.handler = [](const Request&, const std::shared_ptr<Reply>&) {}});
  server.stop();
  server.run();
  Server unused({.handler = [](const Request&, const std::shared_ptr<Reply>&) {}});
}

}  // namespace
}  // namespace routing::http::deadlines_and_ends_test
