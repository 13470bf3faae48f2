// Answers that come piece by piece, from other threads, to clients that read slowly, go away, or close one side only.
#include "routing/core/error.h"
#include "serving/http/test_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace routing::http::streaming_test {
namespace {

using namespace std::chrono_literals;

const Response kEvents{.content_type = "text/event-stream"};

TEST(Streams, ComePieceByPiece) {
  HeldReplies held;
  TestServer server(held.handler());
  Client client = server.client();
  client.send(get("/"));
  const auto reply = held.get(0);
  reply->begin(kEvents);
  const std::string head = client.receive_until("\r\n\r\n");
  EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_NE(head.find("Content-Type: text/event-stream\r\n"), std::string::npos);
  for (const std::string piece : {"data: 1\n\n", "data: 2\n\n"}) {
    EXPECT_TRUE(reply->write(piece));
    EXPECT_EQ(client.receive_until(piece + "\r\n"), "9\r\n" + piece + "\r\n") << "at once, not with the next one";
  }
  EXPECT_TRUE(reply->write(""));
  reply->end();
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_FALSE(reply->write("late"));
  EXPECT_FALSE(reply->gone()) << "the client has it all";
  client.send(get("/again"));
  ASSERT_TRUE(held.get(1)) << "the connection goes on";
}

TEST(Streams, BeginWithTheBodyOfTheirHead) {
  TestServer server([](const Request&, const std::shared_ptr<Reply>& reply) {
    reply->begin({.body = "first "});
    reply->write("second");
    reply->end();
  });
  Client client = server.client();
  client.send(get("/"));
  const Answer answer = client.answer();
  EXPECT_TRUE(answer.chunked);
  EXPECT_EQ(answer.body, "first second");
}

TEST(Streams, ToHttp10EndWithTheConnection) {
  TestServer server([](const Request&, const std::shared_ptr<Reply>& reply) {
    reply->begin({});
    reply->write("one ");
    reply->write("two");
    reply->end();
  });
  Client client = server.client();
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string all = client.receive_all();
  EXPECT_FALSE(client.was_reset);
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  EXPECT_NE(all.find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(all.ends_with("\r\n\r\none two"));
}

TEST(Streams, OfHeadHaveNoPieces) {
  TestServer server([](const Request&, const std::shared_ptr<Reply>& reply) {
    reply->begin(kEvents);
    EXPECT_TRUE(reply->write("piece"));
    reply->end();
  });
  Client client = server.client();
  client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\nHEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.answer(true).status, 200);
  EXPECT_EQ(client.answer(true).status, 200);
}

TEST(Streams, WrittenInTheWrongOrderAreErrorsOfTheWriter) {
  TestServer server([](const Request&, const std::shared_ptr<Reply>& reply) {
    EXPECT_THROW(reply->write("x"), InputError);
    EXPECT_THROW(reply->end(), InputError);
    reply->send({.body = "fine"});
    EXPECT_FALSE(reply->write("x"));
    reply->begin({});
    reply->end();
  });
  Client client = server.client();
  client.send(get("/") + get("/"));
  EXPECT_EQ(client.answer().body, "fine");
  EXPECT_EQ(client.answer().body, "fine");
}

TEST(Streams, ThatAreDroppedBreakOffVisibly) {
  HeldReplies held;
  TestServer server(held.handler());
  Client client = server.client();
  client.send(get("/"));
  held.get(0)->begin(kEvents);
  held.get(0)->write("data: 1\n\n");
  client.receive_until("data: 1\n\n\r\n");
  held.drop_all();
  EXPECT_EQ(client.receive_all(), "") << "no chunk that says it is the end";
}

// A thread that writes tokens and one client for each.
TEST(Streams, OfManyClientsFromManyThreadsAreWholeAndUnmixed) {
  constexpr int kClients = 12, kPieces = 400;
  HeldReplies held;
  TestServer server(held.handler());
  std::vector<Client> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(server.client());
    clients.back().send(get("/" + std::to_string(i)));
  }
  ASSERT_TRUE(held.get(kClients - 1));
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = writer; i < kClients; i += 3) held.get(static_cast<std::size_t>(i))->begin(kEvents);
      for (int piece = 0; piece < kPieces; ++piece) {
        for (int i = writer; i < kClients; i += 3) {
          const auto number = static_cast<std::size_t>(i);
          EXPECT_TRUE(held.get(number)->write(held.request(number).path + "-" + std::to_string(piece) + "\n"));
        }
      }
      for (int i = writer; i < kClients; i += 3) held.get(static_cast<std::size_t>(i))->end();
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (int i = 0; i < kClients; ++i) {
    std::string expected;
    for (int piece = 0; piece < kPieces; ++piece) {
      expected += "/" + std::to_string(i) + "-" + std::to_string(piece) + "\n";
    }
    const Answer answer = clients[static_cast<std::size_t>(i)].answer();
    EXPECT_TRUE(answer.complete);
    EXPECT_EQ(answer.body, expected);
  }
}

TEST(Streams, ToAClientThatDoesNotReadEndAtTheLimit) {
  HeldReplies held;
  TestServer server(Limits{.unsent_bytes = 100000}, held.handler());
  Client slow = server.client(4096);
  slow.send(get("/"));
  const auto reply = held.get(0);
  std::atomic<int> calls{0};
  reply->when_gone([&] { ++calls; });
  reply->begin(kEvents);
  int pieces = 0;
  // What the kernel takes comes before: some megabytes.
  while (pieces < 100000 && reply->write(std::string(10000, 'x'))) ++pieces;
  EXPECT_LT(pieces, 100000);
  EXPECT_TRUE(reply->gone());
  EXPECT_TRUE(becomes_true([&] { return calls == 1; }));
  EXPECT_TRUE(becomes_true([&] { return server->counters().connections_open == 0; }));
  EXPECT_EQ(server->counters().gone, 1U);
}

TEST(Streams, ToAClientThatReadsArriveWholeHoweverLong) {
  HeldReplies held;
  TestServer server(Limits{.unsent_bytes = 1 << 20}, held.handler());
  Client client = server.client();
  client.send(get("/", "Connection: close\r\n"));
  const auto reply = held.get(0);
  std::string body;
  std::thread reader([&] { body = answers_in(client.receive_all(), true).at(0).body; });
  reply->begin({});
  std::size_t written = 0;
  for (int i = 0; i < 3000; ++i) {
    // The writer knows how far the client is behind only by what it is told: it leaves it time.
    while (written > server->counters().bytes_out + 500000) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(reply->write(std::string(10000, static_cast<char>('a' + i % 26))));
    written += 10000;
  }
  reply->end();
  reader.join();
  ASSERT_EQ(body.size(), 30000000U);
  for (std::size_t i = 0; i < 3000; ++i) ASSERT_EQ(body[i * 10000 + 17], static_cast<char>('a' + i % 26));
}

// How a client goes: both sides closed, with and without a reset; before and within a stream.
class Departures : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(Departures, AreNoticedAtOnceAndOnceWhileNothingIsWritten) {
  const auto [reset, streaming] = GetParam();
  HeldReplies held;
  TestServer server(held.handler());
  Client client = server.client();
  client.send(get("/"));
  const auto reply = held.get(0);
  std::atomic<int> calls{0};
  reply->when_gone([&] { ADD_FAILURE() << "a later one took its place"; });
  reply->when_gone([&] { ++calls; });
  if (streaming) {
    reply->begin(kEvents);
    reply->write("data: 1\n\n");
    client.receive_until("data: 1\n\n\r\n");
  }
  EXPECT_FALSE(reply->gone());
  reset ? client.reset() : client.close();
  EXPECT_TRUE(becomes_true([&] { return calls == 1; }));
  EXPECT_TRUE(reply->gone());
  EXPECT_FALSE(streaming && reply->write("data: 2\n\n"));
  reply->send({});
  reply->end();
  EXPECT_TRUE(becomes_true([&] { return server->counters().connections_open == 0; }));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(server->counters().gone, 1U);
}

INSTANTIATE_TEST_SUITE_P(AllKinds, Departures, testing::Combine(testing::Bool(), testing::Bool()),
                         [](const auto& kind) {
                           return std::string(std::get<0>(kind.param) ? "Reset" : "Closed") +
                                  (std::get<1>(kind.param) ? "InAStream" : "BeforeTheAnswer");
                         });

TEST(HalfClosed, ClientsGetTheirAnswer) {
  HeldReplies held;
  TestServer server(held.handler());
  Client client = server.client();
  client.send(get("/1") + get("/2"));
  client.close_sending();
  for (std::size_t i = 0; i < 2; ++i) {
    const auto reply = held.get(i);
    ASSERT_TRUE(reply);
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(reply->gone());
    reply->send({.body = "answer " + std::to_string(i)});
    EXPECT_EQ(client.answer().body, "answer " + std::to_string(i));
  }
  EXPECT_TRUE(client.is_closed());
  EXPECT_GE(client.continues, 1) << "how the server found out";
}

TEST(HalfClosed, ClientsGetTheirStreamWhole) {
  HeldReplies held;
  TestServer server(held.handler());
  Client client = server.client();
  client.send(get("/"));
  const auto reply = held.get(0);
  reply->begin(kEvents);
  reply->write("one ");
  client.close_sending();
  // The probe: a zero in front of the size of the next chunk, or of the last one.
  const std::string before = client.receive_until("one \r\n");
  EXPECT_EQ(client.receive_until("0"), "0");
  EXPECT_FALSE(reply->gone());
  reply->write("two ");
  EXPECT_EQ(client.receive_until("two \r\n"), "4\r\ntwo \r\n");
  reply->end();
  EXPECT_EQ(client.receive_all(), "0\r\n\r\n");
  EXPECT_FALSE(client.was_reset);
}

TEST(HalfClosed, ClientsOfAStreamThatEndsNextReadItsEnd) {
  HeldReplies held;
  TestServer server(held.handler());
  Client client = server.client();
  client.send(get("/"));
  const auto reply = held.get(0);
  reply->begin({});
  reply->write("all");
  client.receive_until("all");
  client.close_sending();
  EXPECT_EQ(client.receive_until("0"), "\r\n0");
  reply->end();
  EXPECT_EQ(client.receive_all(), "0\r\n\r\n") << "00 is a last chunk as well";
}

TEST(HalfClosed, ClientsOfHttp10GetTheirAnswerWithoutAnythingBefore) {
  HeldReplies held;
  TestServer server(held.handler());
  Client client = server.client();
  client.send("GET / HTTP/1.0\r\n\r\n");
  client.close_sending();
  const auto reply = held.get(0);
  EXPECT_TRUE(client.is_silent_for(50ms));
  reply->send({.body = "answer"});
  EXPECT_EQ(client.answer().body, "answer");
}

// It sent one request and much of the next before it went: the server had stopped to read.
TEST(PipelinedBodies, OfAClientThatResetsDoNotHideThat) {
  HeldReplies held;
  TestServer server(Limits{.header_bytes = 4096}, held.handler());
  Client client = server.client();
  client.send(get("/"));
  const auto reply = held.get(0);
  ASSERT_TRUE(client.send(post("/next", std::string(100000, 'x'))));
  client.reset();
  EXPECT_TRUE(becomes_true([&] { return reply->gone(); }));
}

TEST(PipelinedBodies, BeyondTheWindowWaitAndArrive) {
  HeldReplies held;
  TestServer server(Limits{.header_bytes = 4096}, held.handler());
  Client client = server.client();
  client.send(get("/"));
  const auto reply = held.get(0);
  const std::string body(3000000, 'x');
  std::thread sender([&] { client.send(post("/next", body)); });
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(server->counters().bytes_in, 100000U) << "the client has to wait";
  reply->send({});
  const auto next = held.get(1);
  sender.join();
  ASSERT_TRUE(next);
  EXPECT_TRUE(held.request(1).body == body);
}

std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// A loop that asks again and again would take all of the time that it gets.
TEST(ConnectionsThatWait, CostNoTime) {
  HeldReplies held;
  TestServer server(Limits{.header_bytes = 4096}, held.handler());
  Client half_closed = server.client(), ahead = server.client(), idle = server.client(), slow = server.client(4096);
  half_closed.send(get("/1"));
  half_closed.close_sending();
  ASSERT_TRUE(held.get(0));
  ahead.send(get("/2") + post("/next", std::string(100000, 'x')));
  ASSERT_TRUE(held.get(1));
  slow.send(get("/3"));
  ASSERT_TRUE(held.get(2));
  held.get(2)->send({.body = std::string(32 << 20, 'x')});
  std::this_thread::sleep_for(100ms);
  const auto before = processor_time();
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(processor_time() - before, 100ms);
}

TEST(Replies, MayOutliveConnectionAndServer) {
  HeldReplies held;
  TestServer server(held.handler());
  std::atomic<int> calls{0};
  {
    Client client = server.client();
    client.send(get("/"));
    ASSERT_TRUE(held.get(0));
  }
  Client client = server.client();
  client.send(get("/"));
  const auto reply = held.get(1);
  reply->when_gone([&] { ++calls; });
  server.destroy();
  EXPECT_EQ(calls, 1) << "a server that stops tells";
  EXPECT_TRUE(reply->gone());
  reply->add_headers({{"X", "y"}});
  reply->begin({});
  EXPECT_FALSE(reply->write("late"));
  reply->send({.body = "late"});
  reply->end();
  reply->when_gone([&] { ++calls; });
  EXPECT_EQ(calls, 1) << "afterwards only gone() says so";
  EXPECT_TRUE(client.is_closed());
}

TEST(Replies, TellWhoAsksLateThatTheClientIsGone) {
  HeldReplies held;
  TestServer server(held.handler());
  {
    Client client = server.client();
    client.send(get("/"));
    ASSERT_TRUE(held.get(0));
  }
  const auto reply = held.get(0);
  ASSERT_TRUE(becomes_true([&] { return reply->gone(); }));
  ASSERT_TRUE(becomes_true([&] { return server->counters().connections_open == 0; }));
  std::atomic<int> calls{0};
  std::thread::id caller;
  reply->when_gone([&] {
    caller = std::this_thread::get_id();
    ++calls;
  });
  EXPECT_TRUE(becomes_true([&] { return calls == 1; }));
  EXPECT_NE(caller, std::this_thread::get_id()) << "on the I/O thread";
}

TEST(Replies, ForgetTheFunctionOnceTheAnswerIsOut) {
  HeldReplies held;
  TestServer server(held.handler());
  std::atomic<int> calls{0};
  const auto watched = std::make_shared<int>(1);
  {
    Client client = server.client();
    client.send(get("/"));
    const auto reply = held.get(0);
    reply->when_gone([&calls, watched] { ++calls; });
    reply->send({.body = "all"});
    EXPECT_EQ(client.answer().body, "all");
    EXPECT_TRUE(becomes_true([&] { return watched.use_count() == 1; }));
  }
  EXPECT_TRUE(becomes_true([&] { return server->counters().connections_open == 0; }));
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(held.get(0)->gone());
}

TEST(Replies, WhoseFunctionThrowsDoNotEndTheServer) {
  HeldReplies held;
  TestServer server(held.handler());
  {
    Client client = server.client();
    client.send(get("/"));
    held.get(0)->when_gone([] { throw std::runtime_error("no"); });
  }
  EXPECT_TRUE(becomes_true([&] { return server.problems().size() == 1; }));
  Client client = server.client();
  client.send(get("/"));
  held.get(1)->send({.body = "fine"});
  EXPECT_EQ(client.answer().body, "fine");
}

}  // namespace
}  // namespace routing::http::streaming_test
