// Requests and whole answers over a connection.
#include "routing/core/error.h"
#include "serving/http/test_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace routing::http::connection_test {
namespace {

using namespace std::chrono_literals;

Response as_json(int status, const std::string& message) {
  return {.status = status, .body = "{\"error\": \"" + message + "\"}"};
}

TEST(Connections, AnswerARequestAndStayOpenForTheNext) {
  TestServer server;
  Client client = server.client();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(post("/a?n=" + std::to_string(i), "body")));
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "POST /a?n=" + std::to_string(i) + " body");
    EXPECT_EQ(answer.headers.at("content-type"), "text/plain");
    EXPECT_TRUE(answer.headers.contains("date"));
    EXPECT_FALSE(answer.headers.contains("connection"));
  }
  EXPECT_EQ(server->counters().connections_total, 1U);
  EXPECT_EQ(server->counters().requests, 3U);
}

TEST(Connections, CloseWhenTheClientWantsThat) {
  TestServer server;
  Client client = server.client();
  client.send(get("/", "Connection: close\r\n"));
  EXPECT_EQ(client.answer().headers.at("connection"), "close");
  EXPECT_TRUE(client.is_closed());
  EXPECT_FALSE(client.was_reset);
}

TEST(Connections, OfHttp10AreClosedUnlessTheyAreToBeKept) {
  TestServer server;
  Client client = server.client();
  client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.answer().headers.at("connection"), "keep-alive");
  client.send("GET /b HTTP/1.0\r\n\r\n");
  const Answer answer = client.answer();
  EXPECT_EQ(answer.body, "GET /b ");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST(Connections, AnswerHeadWithoutABody) {
  TestServer server;
  Client client = server.client();
  client.send("HEAD /long HTTP/1.1\r\nHost: h\r\n\r\n" + get("/next"));
  const Answer head = client.answer(true);
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(std::string("HEAD /long ").size()));
  EXPECT_EQ(client.answer().body, "GET /next ") << "no body may stand before it";
}

TEST(Connections, AnswersWithoutABodyAreFollowedByTheNext) {
  TestServer server([](const Request& request, const std::shared_ptr<Reply>& reply) {
    reply->send({.status = request.path == "/204" ? 204 : request.path == "/304" ? 304 : 200, .body = "body"});
  });
  Client client = server.client();
  client.send(get("/204") + get("/304") + get("/200"));
  EXPECT_EQ(client.answer().status, 204);
  EXPECT_EQ(client.answer().status, 304);
  EXPECT_EQ(client.answer().body, "body");
}

TEST(Connections, AnswerPipelinedRequestsInTheirOrder) {
  HeldReplies held;
  TestServer server(held.handler());
  Client client = server.client();
  client.send(get("/1") + get("/2") + post("/3", "xyz") + get("/4"));
  for (std::size_t i = 0; i < 4; ++i) {
    const auto reply = held.get(i);
    ASSERT_TRUE(reply);
    EXPECT_EQ(held.count(), i + 1) << "one after the other";
    EXPECT_EQ(held.request(i).path, "/" + std::to_string(i + 1));
    std::thread([&] { reply->send({.body = std::to_string(i)}); }).join();
    EXPECT_EQ(client.answer().body, std::to_string(i));
  }
}

// 3,000 of them in one go: the stack does not grow with them.
TEST(Connections, AnswerThousandsOfPipelinedRequests) {
  TestServer server;
  Client client = server.client();
  std::string requests, bodies;
  for (int i = 0; i < 3000; ++i) requests += get("/" + std::to_string(i));
  std::thread sender([&] { client.send(requests + get("/last", "Connection: close\r\n")); });
  const std::vector<Answer> answers = answers_in(client.receive_all(), true);
  sender.join();
  ASSERT_EQ(answers.size(), 3001U);
  for (std::size_t i = 0; i < 3000; ++i) ASSERT_EQ(answers[i].body, "GET /" + std::to_string(i) + " ");
}

// The server has read the first part before the second one is sent.
TEST(Connections, AnswerTheSameHoweverTheBytesAreCut) {
  TestServer server;
  const std::string stream =
      get("/1?a=b") + post("/2", "two") + "\r\n" +
      "POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: t\r\n\r\n" +
      "HEAD /4 HTTP/1.1\r\nHost: h\r\n\r\n" + "OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
  const std::vector<std::string> expected{"GET /1?a=b ", "POST /2 two", "POST /3 abcde"};
  for (std::size_t cut = 1; cut < stream.size(); ++cut) {
    Client client = server.client();
    const std::uint64_t before = server->counters().bytes_in;
    ASSERT_TRUE(client.send(stream.substr(0, cut)));
    ASSERT_TRUE(becomes_true([&] { return server->counters().bytes_in == before + cut; }));
    ASSERT_TRUE(client.send(stream.substr(cut)));
    for (const std::string& body : expected) ASSERT_EQ(client.answer().body, body) << "cut at " << cut;
    ASSERT_EQ(client.answer(true).status, 200) << "cut at " << cut;
    ASSERT_EQ(client.answer().body, "OPTIONS * ") << "cut at " << cut;
    ASSERT_TRUE(client.is_closed());
  }
}

TEST(Connections, SendContinueToWhoWaitsForIt) {
  TestServer server;
  Client client = server.client();
  const std::string head = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
  client.send(head);
  EXPECT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  EXPECT_EQ(client.answer().body, "POST /a body");
  client.send(head + "body");
  EXPECT_EQ(client.answer().body, "POST /a body");
  EXPECT_EQ(client.continues, 0) << "who does not wait is not told";
}

TEST(Connections, RefuseInsteadOfContinue) {
  TestServer server(Limits{.body_bytes = 1000}, {});
  Client client = server.client();
  client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.answer().status, 413);
  EXPECT_EQ(client.continues, 0);
  EXPECT_TRUE(client.is_closed());
}

TEST(Connections, RefuseAGigabyteBeforeItIsSent) {
  std::atomic<int> requests{0};
  TestServer server([&](const Request&, const std::shared_ptr<Reply>&) { ++requests; });
  Client client = server.client();
  client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1073741824\r\n\r\n");
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(requests, 0);
}

// It sends on although the answer is there, as simple clients do: the answer must survive, and the sending must end.
TEST(Connections, ToldToWhoSendsAGigabyteAllTheSame) {
  TestServer server;
  Client client = server.client();
  client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1073741824\r\n\r\n");
  const std::string piece(1 << 20, 'x');
  int sent = 0;
  while (sent < 1024 && client.send(piece)) ++sent;
  EXPECT_LT(sent, 1024) << "nobody reads a gigabyte";
  EXPECT_LT(server->counters().bytes_in, 200U << 20);
}

TEST(Connections, RefuseChunksWithoutEndAtTheLimit) {
  TestServer server(Limits{.body_bytes = 100000}, {});
  Client client = server.client();
  client.send("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(4096, 'x') + "\r\n";
  int sent = 0;
  while (sent < 10000 && client.send(chunk) && client.is_silent_for(0ms)) ++sent;
  EXPECT_LT(sent, 10000);
  EXPECT_EQ(client.answer().status, 413);
}

TEST(Connections, ErrorsAreWrittenByTheCaller) {
  TestServer server(ServerOptions{.limits = {.header_bytes = 1000}, .error_body = as_json});
  const auto answer_to = [&](const std::string& bytes) {
    Client client = server.client();
    client.send(bytes);
    const Answer answer = client.answer();
    EXPECT_EQ(answer.headers.at("connection"), "close");
    EXPECT_EQ(answer.headers.at("content-type"), "application/json");
    EXPECT_TRUE(answer.body.starts_with("{\"error\": \"")) << answer.body;
    EXPECT_TRUE(client.is_closed());
    return answer.status;
  };
  EXPECT_EQ(answer_to("GARBAGE\r\n\r\n"), 400);
  EXPECT_EQ(answer_to(get("/..")), 400);
  EXPECT_EQ(answer_to(get("/", "X: " + std::string(1000, 'x') + "\r\n")), 431);
  EXPECT_EQ(answer_to(get("/" + std::string(1000, 'x'))), 414);
  EXPECT_EQ(answer_to("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
  EXPECT_EQ(answer_to("CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n"), 405);
  EXPECT_EQ(answer_to(get("/", "Transfer-Encoding: gzip\r\n")), 501);
  EXPECT_EQ(server->counters().answers[4], 5U);
  EXPECT_EQ(server->counters().answers[5], 2U);
  EXPECT_EQ(server->counters().requests, 0U);
}

TEST(Connections, ErrorsArePlainTextUnlessTheCallerKnowsBetter) {
  TestServer server(
      ServerOptions{.error_body = [](int, const std::string&) -> Response { throw std::runtime_error("no"); }});
  Client client = server.client();
  client.send("GARBAGE\r\n\r\n");
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.headers.at("content-type"), "text/plain; charset=utf-8");
  EXPECT_FALSE(server.problems().empty());
}

TEST(Connections, ExceptionsOfTheHandlerAreAnsweredWithoutTheirText) {
  TestServer server(
      [](const Request&, const std::shared_ptr<Reply>&) { throw std::runtime_error("/home/secret: no such file"); });
  Client client = server.client();
  client.send(get("/"));
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  ASSERT_EQ(server.problems().size(), 1U);
  EXPECT_NE(server.problems()[0].find("secret"), std::string::npos);
  client.send(get("/"));
  EXPECT_EQ(client.answer().status, 500) << "the connection goes on";
}

TEST(Connections, HandlersThatForgetToAnswerAreNoticed) {
  HeldReplies held;
  TestServer server([&](const Request& request, const std::shared_ptr<Reply>& reply) {
    if (request.path == "/later") held.handler()(request, reply);
  });
  Client client = server.client();
  client.send(get("/"));
  EXPECT_EQ(client.answer().status, 500);
  client.send(get("/later"));
  ASSERT_TRUE(held.get(0));
  held.drop_all();
  EXPECT_EQ(client.answer().status, 500);
}

TEST(Connections, AnswersThatCannotBeWrittenAreRefusedToWhoWroteThem) {
  std::string message;
  TestServer server([&](const Request&, const std::shared_ptr<Reply>& reply) {
    try {
      reply->send({.headers = {{"X", "a\r\nInjected: yes"}}});
    } catch (const InputError& error) {
      message = error.what();
    }
    reply->send({.body = "second"});
    reply->send({.body = "third"});
  });
  Client client = server.client();
  client.send(get("/"));
  EXPECT_EQ(client.answer().body, "second");
  EXPECT_NE(message.find("line break"), std::string::npos);
  client.send(get("/"));
  EXPECT_EQ(client.answer().body, "second") << "the third is nowhere";
}

TEST(Connections, AreAdmittedBeforeTheBodyIsRead) {
  ServerOptions options;
  options.admit = [](const Request& request) {
    Admission admission{.headers = {{"X-Seen", request.path}}};
    if (request.path == "/no") admission.refusal = Response{.status = 403, .body = "no"};
    if (request.path == "/throw") throw std::runtime_error("broken");
    return admission;
  };
  TestServer server(std::move(options));
  Client client = server.client();
  client.send(get("/yes"));
  EXPECT_EQ(client.answer().headers.at("x-seen"), "/yes");
  client.send(get("/no"));
  const Answer refused = client.answer();
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.headers.at("x-seen"), "/no");
  client.send(get("/throw"));
  EXPECT_EQ(client.answer().status, 500);
  client.send("POST /no HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n\r\n");
  const Answer unread = client.answer();
  EXPECT_EQ(unread.status, 403) << "without waiting for the body";
  EXPECT_EQ(unread.headers.at("connection"), "close");
  EXPECT_EQ(client.continues, 0);
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(server->counters().requests, 1U);
}

TEST(Connections, RepliesTakeHeadersForWhateverTheAnswerIs) {
  TestServer server([](const Request&, const std::shared_ptr<Reply>& reply) {
    reply->add_headers({{"X-Request", "7"}});
    EXPECT_THROW(reply->add_headers({{"X", "\n"}}), InputError);
    throw std::runtime_error("no");
  });
  Client client = server.client();
  client.send(get("/"));
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.headers.at("x-request"), "7");
}

TEST(Connections, KnowWhoAsks) {
  TestServer server(
      [](const Request& request, const std::shared_ptr<Reply>& reply) { reply->send({.body = request.peer}); });
  Client client = server.client();
  client.send(get("/"));
  EXPECT_TRUE(client.answer().body.starts_with("127.0.0.1:"));
}

TEST(Connections, LargeBodiesAndAnswersArriveWhole) {
  TestServer server(
      [](Request request, const std::shared_ptr<Reply>& reply) { reply->send({.body = std::move(request.body)}); });
  Client client = server.client();
  std::string body(8 << 20, ' ');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i * i % 23);
  std::thread sender([&] { client.send(post("/", body)); });
  const Answer answer = client.answer();
  sender.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body == body);
}

TEST(Connections, BodiesAllTogetherHaveALimit) {
  TestServer server(Limits{.waiting_bytes = 300000}, {});
  std::vector<Client> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(server.client());
    const std::uint64_t before = server->counters().bytes_in;
    const std::string part = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + std::string(140000, 'x');
    clients.back().send(part);
    ASSERT_TRUE(becomes_true([&] { return server->counters().bytes_in == before + part.size(); }));
  }
  Client third = server.client();
  third.send(post("/", std::string(200000, 'x')));
  const Answer answer = third.answer();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  clients.clear();
  EXPECT_TRUE(becomes_true([&] { return server->counters().connections_open <= 1; }));
  Client fourth = server.client();
  fourth.send(post("/", std::string(200000, 'x')));
  EXPECT_EQ(fourth.answer().status, 200) << "once the others are gone there is room";
}

TEST(Connections, CutInTheirMiddleAreToldSo) {
  TestServer server;
  for (const std::string bytes : {"GET / HT", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf",
                                  "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"}) {
    Client client = server.client();
    client.send(bytes);
    client.close_sending();
    EXPECT_EQ(client.answer().status, 400) << bytes;
    EXPECT_TRUE(client.is_closed());
  }
  Client silent = server.client();
  silent.send("\r\n");
  silent.close_sending();
  EXPECT_EQ(silent.receive_all(), "") << "who asked nothing is told nothing";
}

TEST(Connections, CountBytesAndAnswers) {
  TestServer server;
  {
    Client client = server.client();
    client.send(get("/a"));
    const Answer answer = client.answer();
    EXPECT_EQ(server->counters().bytes_in, get("/a").size());
    EXPECT_TRUE(becomes_true([&] { return server->counters().bytes_out > answer.body.size(); }));
    EXPECT_EQ(server->counters().answers[2], 1U);
    EXPECT_EQ(server->counters().connections_open, 1U);
  }
  EXPECT_TRUE(becomes_true([&] { return server->counters().connections_open == 0; }));
  EXPECT_EQ(server->counters().connections_total, 1U);
  EXPECT_EQ(server->counters().gone, 0U);
}

}  // namespace
}  // namespace routing::http::connection_test
