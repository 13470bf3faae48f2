// Ten thousand clients, too many clients, no descriptors left; and addresses that nobody can listen at.
#include "routing/serving/http/listener.h"
#include "serving/http/many_clients.h"
#include "serving/http/test_server.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <string>
#include <unistd.h>
#include <vector>

namespace routing::http::crowds_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kCrowd = 10000;

Limits patient() {
  return {.seconds_to_read_header = 300, .seconds_to_read_body = 300, .seconds_idle = 300, .seconds_to_write = 300};
}

// 5,000 are silent and 5,000 stop in the middle of a request; a good one is answered. Then all of them go on at once.
TEST(TenThousandConnections, AreHeldWhileGoodRequestsAreAnsweredAndAnsweredTooAtLast) {
  const DescriptorLimit limit;
  if (limit.hard() < kCrowd + 500) {
    GTEST_SKIP() << "the hard limit of open files is " << limit.hard() << ", too low for " << kCrowd << " connections";
  }
  std::vector<int> crowd;
  const auto half = [&](bool first) {
    const auto middle = crowd.begin() + static_cast<std::ptrdiff_t>(crowd.size() / 2);
    return first ? std::vector<int>(crowd.begin(), middle) : std::vector<int>(middle, crowd.end());
  };
  Child child({[&](std::int64_t port) {
                 crowd = Crowd::connect(static_cast<std::uint16_t>(port), kCrowd);
                 return Crowd::send_to_all(half(true), "GET /crowd HTTP/1.1\r\nHo") ? std::int64_t(crowd.size()) : -1;
               },
               [&](std::int64_t) {
                 const bool sent = Crowd::send_to_all(half(true), "st: localhost\r\n\r\n") &&
                                   Crowd::send_to_all(half(false), get("/crowd"));
                 return sent ? std::int64_t(Crowd::answered(crowd, "HTTP/1.1 200 OK\r\n", crowd.size())) : -1;
               },
               [&](std::int64_t) {
                 for (const int client : crowd) ::close(client);
                 return std::int64_t(0);
               }});
  TestServer server(patient(), {});
  ASSERT_GE(server->connection_limit(), kCrowd);
  ASSERT_EQ(child.run(0, server->port()), std::int64_t(kCrowd));
  EXPECT_TRUE(becomes_true([&] { return server->counters().connections_open == kCrowd; }));
  // The limit is reached: who comes now is told so, and who is here is served.
  Client late = server.client();
  EXPECT_EQ(late.answer().status, 503);
  EXPECT_EQ(child.run(1), std::int64_t(kCrowd));
  EXPECT_EQ(server->counters().requests, kCrowd);
  EXPECT_EQ(child.run(2), 0);
  EXPECT_TRUE(becomes_true([&] { return server->counters().connections_open == 0; }));
  Client good = server.client();
  good.send(get("/good"));
  EXPECT_EQ(good.answer().body, "GET /good ");
  EXPECT_TRUE(server.problems().empty());
}

TEST(ConnectionLimits, AreToldWithRetryAfterAndForgottenWhenThereIsRoom) {
  Limits limits = patient();
  limits.connections = 5;
  TestServer server(limits, {});
  EXPECT_EQ(server->connection_limit(), 5U);
  std::vector<Client> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(server.client());
    clients.back().send(get("/"));
    EXPECT_EQ(clients.back().answer().status, 200);
  }
  // More than are refused properly at a time.
  for (int i = 0; i < 300; ++i) {
    Client refused = server.client();
    refused.send(get("/"));
    const Answer answer = refused.answer();
    if (!refused.was_reset) {
      ASSERT_EQ(answer.status, 503);
      ASSERT_EQ(answer.headers.at("retry-after"), "1");
      ASSERT_EQ(answer.headers.at("connection"), "close");
    }
  }
  EXPECT_EQ(server->counters().connections_refused, 300U);
  clients[0].send(get("/still"));
  EXPECT_EQ(clients[0].answer().status, 200);
  clients.clear();
  EXPECT_TRUE(becomes_true([&] { return server->counters().connections_open == 0; }));
  Client next = server.client();
  next.send(get("/"));
  EXPECT_EQ(next.answer().status, 200);
}

TEST(ConnectionLimits, AreToldToWhoHasNotAskedYet) {
  Limits limits = patient();
  limits.connections = 1;
  TestServer server(limits, {});
  Client first = server.client();
  ASSERT_TRUE(becomes_true([&] { return server->counters().connections_open == 1; }));
  Client second = server.client();
  EXPECT_EQ(second.answer().status, 503);
  EXPECT_TRUE(second.is_closed());
}

// The clients' sockets are there before; then the process has none left for the server's ends.
TEST(Descriptors, ThatRunOutAreNoReasonToSpinOrDie) {
  const DescriptorLimit limit;
  std::vector<int> crowd;
  Child child({[&](std::int64_t port) {
                 crowd = Crowd::connect(static_cast<std::uint16_t>(port), 30);
                 return std::int64_t(crowd.size());
               },
               [&](std::int64_t refused) {
                 return std::int64_t(Crowd::answered(crowd, "HTTP/1.1 503 ", static_cast<std::size_t>(refused)));
               }});
  TestServer server(patient(), {});
  Client before = server.client();
  before.send(get("/before"));
  EXPECT_EQ(before.answer().status, 200);
  const int highest = ::dup(before.descriptor());
  ::close(highest);
  limit.set_soft(static_cast<std::size_t>(highest) + 3);
  ASSERT_EQ(child.run(0, server->port()), 30);
  EXPECT_TRUE(
      becomes_true([&] { return server->counters().connections_refused + server->counters().connections_open == 31; }));
  EXPECT_GE(server->counters().connections_refused, 20U);
  before.send(get("/during"));
  EXPECT_EQ(before.answer().status, 200) << "who is here is served";
  const auto refused = static_cast<std::int64_t>(server->counters().connections_refused);
  EXPECT_EQ(child.run(1, refused), refused) << "and who is refused knows why";
  EXPECT_EQ(server.problems().size(), 1U) << "said once, not for each";
  limit.set_soft(limit.soft());
  Client after = server.client();
  after.send(get("/after"));
  EXPECT_EQ(after.answer().status, 200);
}

// The processor's time while nothing can be accepted: a loop that spins uses all of it.
TEST(Descriptors, ThatAreNotThereEvenForTheSpareOneAreWaitedFor) {
  const DescriptorLimit limit;
  Listener listener({});
  Client client(listener.port());
  ASSERT_TRUE(becomes_true([&] {
    const int highest = ::dup(0);
    ::close(highest);
    limit.set_soft(static_cast<std::size_t>(highest));
    return true;
  }));
  EXPECT_EQ(listener.accept("HTTP/1.1 503 \r\n\r\n").outcome, Listener::Outcome::refused);
  EXPECT_EQ(client.receive_all(), "HTTP/1.1 503 \r\n\r\n");
  EXPECT_EQ(listener.accept("").outcome, Listener::Outcome::none_waits)
      << "nobody waits, though there is no descriptor";
  limit.set_soft(limit.soft());
  Client second(listener.port());
  const Listener::Accepted accepted = listener.accept("");
  EXPECT_EQ(accepted.outcome, Listener::Outcome::accepted);
  EXPECT_TRUE(accepted.peer.starts_with("127.0.0.1:"));
  ::close(accepted.descriptor);
}

TEST(Descriptors, AreAskedForAsFarAsTheSystemAllows) {
  const DescriptorLimit limit;
  limit.set_soft(100);
  EXPECT_EQ(make_room_for_descriptors(150), 150U);
  const DescriptorLimit raised;
  EXPECT_GE(raised.soft(), 150U);
  EXPECT_LT(raised.soft(), 250U) << "no more than is needed";
  EXPECT_LE(make_room_for_descriptors(limit.hard() + 1000), limit.hard());
  EXPECT_EQ(DescriptorLimit().soft(), limit.hard());
}

TEST(Descriptors, DecideHowManyConnectionsThereMayBe) {
  const DescriptorLimit limit;
  Limits limits = patient();
  limits.connections = 2 * limit.hard();
  TestServer server(limits, {});
  EXPECT_LT(server->connection_limit(), limit.hard());
  EXPECT_GT(server->connection_limit(), limit.hard() / 4);
}

TEST(ListeningAddresses, OfEveryKindWork) {
  for (const std::string ip : {"127.0.0.1", "0.0.0.0"}) {
    TestServer server(ServerOptions{.address = {ip, 0}});
    EXPECT_NE(server->port(), 0);
    Client client = server.client();
    client.send(get("/"));
    EXPECT_EQ(client.answer().status, 200) << ip;
  }
}

TEST(ListeningAddresses, OfIpv6TakeBothKinds) {
  std::unique_ptr<TestServer> server;
  try {
    server = std::make_unique<TestServer>(ServerOptions{.address = {"::", 0}});
  } catch (const ListenError& error) {
    GTEST_SKIP() << "this machine has no IPv6: " << error.what();
  }
  Client client = server->client();
  client.send(get("/"));
  EXPECT_EQ(client.answer().status, 200);
}

TEST(ListeningAddresses, ThatCannotBeUsedAreRefusedWithTheRemedy) {
  TestServer server;
  const std::uint16_t taken = server->port();
  const std::string in_use = message_of<ListenError>([&] { Listener listener({"127.0.0.1", taken}); });
  EXPECT_NE(in_use.find("127.0.0.1:" + std::to_string(taken)), std::string::npos) << in_use;
  EXPECT_NE(in_use.find("choose another `port`"), std::string::npos) << in_use;
  const std::string foreign = message_of<ListenError>([] { Listener listener({"192.0.2.1", 0}); });
  EXPECT_NE(foreign.find("192.0.2.1:0"), std::string::npos) << foreign;
  for (const std::string ip : {"localhost", "", "1.2.3", "127.0.0.1:80", "[::1]"}) {
    EXPECT_NE(message_of<InputError>([&] { Listener listener({ip, 0}); }).find("\"" + ip + "\""), std::string::npos);
  }
}

TEST(ListeningAddresses, AreFreeAgainWhenTheServerHasGone) {
  std::uint16_t port = 0;
  {
    TestServer server;
    port = server->port();
    Client client = server.client();
    client.send(get("/", "Connection: close\r\n"));
    EXPECT_EQ(client.answer().status, 200) << "the server closes first: its side waits in the kernel";
  }
  TestServer again(ServerOptions{.address = {"127.0.0.1", port}});
  EXPECT_EQ(again->port(), port);
}

TEST(ServerLimits, ThatMakeNoSenseAreRefusedByName) {
  const auto handler = [](const Request&, const std::shared_ptr<Reply>&) {};
  const auto message = [&](Limits limits) {
    return message_of<InputError>([&] { Server server({.limits = limits, .handler = handler}); });
  };
  EXPECT_NE(message({.header_bytes = 10}).find("`header_bytes` is 10"), std::string::npos);
  EXPECT_NE(message({.connections = 0}).find("`connections`"), std::string::npos);
  EXPECT_NE(message({.seconds_idle = 0}).find("0 seconds"), std::string::npos);
  EXPECT_NE(message({.seconds_to_write = -1}).find("-1 seconds"), std::string::npos);
  EXPECT_THROW(Server(ServerOptions{}), InputError) << "without a handler";
}

}  // namespace
}  // namespace routing::http::crowds_test
