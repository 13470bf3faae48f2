// What is a request and what is not, byte by byte. Most of these sequences have been used against some server.
#include "routing/serving/http/wire/request_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::http::request_reader_test {
namespace {

using State = RequestReader::State;

constexpr std::size_t kHeader = 1024, kBody = 100;

// What comes of the bytes: "METHOD path|body" for each request, or the status it was refused with; "…" for a rest.
std::string outcome(const std::string& bytes, std::size_t piece) {
  std::string result, input;
  auto reader = std::make_unique<RequestReader>(kHeader, kBody);
  std::size_t given = 0;
  const auto add = [&](const std::string& text) { result += (result.empty() ? "" : " ") + text; };
  while (true) {
    const State before = reader->state();
    const std::size_t taken = reader->read(input);
    input.erase(0, taken);
    if (reader->state() == State::head) {
      reader->read_body();
      continue;
    }
    if (reader->state() == State::complete) {
      add(reader->request().method + " " + reader->request().path + "|" + reader->request().body);
      reader = std::make_unique<RequestReader>(kHeader, kBody);
      if (!input.empty()) continue;
    }
    if (reader->state() == State::refused) {
      add(std::to_string(reader->refusal().status));
      return result;
    }
    if (taken > 0 && reader->state() != before) continue;
    if (given == bytes.size()) break;
    input += bytes.substr(given, piece);
    given = std::min(bytes.size(), given + piece);
  }
  if (reader->begun()) add("…");
  return result;
}

// The same for every way to cut the bytes in pieces of one length, and in two.
std::string outcome(const std::string& bytes) {
  const std::string whole = outcome(bytes, bytes.size());
  for (std::size_t piece = 1; piece < std::min<std::size_t>(bytes.size(), 40); ++piece) {
    EXPECT_EQ(outcome(bytes, piece), whole) << "in pieces of " << piece << ": " << bytes.substr(0, 300);
  }
  return whole;
}

std::string header(const std::string& lines, const std::string& first = "GET /a HTTP/1.1") {
  return first + "\r\nHost: h\r\n" + lines + "\r\n";
}

TEST(RequestReader, PlainRequestsAreRead) {
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n"), "GET /|");
  EXPECT_EQ(outcome("GET /old HTTP/1.0\r\n\r\n"), "GET /old|");
  EXPECT_EQ(outcome(header("Content-Length: 5\r\n", "POST /p HTTP/1.1") + "hello"), "POST /p|hello");
  EXPECT_EQ(outcome(header("Content-Length: 0\r\n", "POST /p HTTP/1.1")), "POST /p|");
  EXPECT_EQ(outcome(header("", "DELETE /p HTTP/1.1")), "DELETE /p|");
  EXPECT_EQ(outcome(header("", "BREW /pot HTTP/1.1")), "BREW /pot|") << "which methods there are is the handler's";
}

TEST(RequestReader, FieldsOfTheRequestAreFilled) {
  RequestReader reader(kHeader, kBody);
  const std::string bytes =
      "POST /runs/exp%2Fa?after=3 HTTP/1.1\r\nHost: h:1\r\nX-One:  a b \r\nx-one: c\r\nX-Empty:\r\n"
      "Content-Length: 2\r\n\r\nhi";
  EXPECT_EQ(reader.read(bytes), bytes.size() - 2);
  ASSERT_EQ(reader.state(), State::head);
  EXPECT_TRUE(reader.has_body());
  EXPECT_FALSE(reader.expects_continue());
  EXPECT_TRUE(reader.keeps_alive());
  EXPECT_EQ(reader.read("hi"), 0U) << "the body waits until it is wanted";
  reader.read_body();
  EXPECT_EQ(reader.state(), State::body);
  EXPECT_EQ(reader.read("h"), 1U);
  EXPECT_EQ(reader.body_bytes(), 1U);
  EXPECT_EQ(reader.read("iGET"), 1U) << "what follows is not its";
  ASSERT_EQ(reader.state(), State::complete);
  const Request& request = reader.request();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/runs/exp/a");
  EXPECT_EQ(request.segments, (std::vector<std::string>{"runs", "exp/a"}));
  EXPECT_EQ(request.query, "after=3");
  EXPECT_EQ(request.header("X-ONE"), "a b, c");
  EXPECT_EQ(request.header("x-empty"), "");
  EXPECT_FALSE(request.header("x-two").has_value());
  EXPECT_EQ(request.body, "hi");
  EXPECT_EQ(request.minor_version, 1);
}

TEST(RequestReader, PipelinedRequestsAreCutWhereTheyEnd) {
  EXPECT_EQ(outcome(header("", "GET /1 HTTP/1.1") + header("Content-Length: 3\r\n", "POST /2 HTTP/1.1") + "abc" +
                    header("Transfer-Encoding: chunked\r\n", "POST /3 HTTP/1.1") + "2\r\nde\r\n0\r\n\r\n" +
                    header("", "HEAD /4 HTTP/1.1")),
            "GET /1| POST /2|abc POST /3|de HEAD /4|");
  EXPECT_EQ(outcome("\r\n\r\n" + header("") + "\r\n" + header("")), "GET /a| GET /a|")
      << "empty lines before are skipped";
}

TEST(RequestReader, ConnectionsAreKeptAsTheVersionAndTheHeaderSay) {
  const auto keeps = [](const std::string& bytes) {
    RequestReader reader(kHeader, kBody);
    reader.read(bytes);
    EXPECT_EQ(reader.state(), State::head) << bytes;
    return reader.keeps_alive();
  };
  EXPECT_TRUE(keeps(header("")));
  EXPECT_FALSE(keeps(header("Connection: close\r\n")));
  EXPECT_FALSE(keeps(header("Connection: TE, Close\r\n")));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(RequestReader, ChunkedBodiesArePutTogether) {
  const std::string head = header("Transfer-Encoding: chunked\r\n", "POST /p HTTP/1.1");
  EXPECT_EQ(outcome(head + "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"), "POST /p|hello!");
  EXPECT_EQ(outcome(head + "0\r\n\r\n"), "POST /p|");
  EXPECT_EQ(outcome(head + "00A\r\n0123456789\r\n000\r\n\r\n"), "POST /p|0123456789");
  EXPECT_EQ(outcome(head + "1;name=\"a b\"\r\nx\r\n0;last\r\n\r\n"), "POST /p|x") << "extensions are dropped";
  EXPECT_EQ(outcome(head + "1\r\nx\r\n0\r\nHost: other\r\nX-T: t\r\n\r\n"), "POST /p|x") << "and trailers";
  EXPECT_EQ(outcome(header("Transfer-Encoding: CHUNKED\r\n", "POST /p HTTP/1.1") + "1\r\nx\r\n0\r\n\r\n"), "POST /p|x");
}

TEST(RequestReader, TrailersDoNotBecomeHeaders) {
  RequestReader reader(kHeader, kBody);
  const std::string bytes = header("Transfer-Encoding: chunked\r\n") + "0\r\nAuthorization: Bearer x\r\n\r\n";
  const std::size_t taken = reader.read(bytes);
  reader.read_body();
  reader.read(std::string_view(bytes).substr(taken));
  ASSERT_EQ(reader.state(), State::complete);
  EXPECT_FALSE(reader.request().header("authorization").has_value());
}

TEST(RequestReader, ChunksThatAreNoneAreRefused) {
  const std::string head = header("Transfer-Encoding: chunked\r\n", "POST /p HTTP/1.1");
  for (const std::string body :
       {"x\r\nhello\r\n0\r\n\r\n", "-1\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n", "5;\r\nhello\r\n0\r\n\r\n", "5\rhello\r\n0\r\n\r\n"}) {
    EXPECT_EQ(outcome(head + body), "400") << body;
  }
  for (const std::string size : {"ffffffffffffffff", "10000000000000000", "fffffffffffffffff", "65"}) {
    const std::string status = outcome(head + size + "\r\n");
    EXPECT_TRUE(status == "413" || status == "400") << size << ": " << status;
  }
}

TEST(RequestReader, BodiesBeyondTheLimitAreRefusedBeforeTheyAreRead) {
  EXPECT_EQ(outcome(header("Content-Length: 100\r\n") + std::string(100, 'x')), "GET /a|" + std::string(100, 'x'));
  EXPECT_EQ(outcome(header("Content-Length: 101\r\n")), "413");
  EXPECT_EQ(outcome(header("Content-Length: 1073741824\r\n")), "413");
  const std::string head = header("Transfer-Encoding: chunked\r\n");
  EXPECT_EQ(outcome(head + "64\r\n" + std::string(100, 'x') + "\r\n0\r\n\r\n"), "GET /a|" + std::string(100, 'x'));
  EXPECT_EQ(outcome(head + "63\r\n" + std::string(99, 'x') + "\r\n2\r\n"), "413") << "counted while read";
  EXPECT_EQ(outcome(head + "65\r\n"), "413");
}

// 100 bytes of body may not cost 100 kB of chunk sizes.
TEST(RequestReader, WhatFramesTheChunksIsLimitedToo) {
  const std::string head = header("Transfer-Encoding: chunked\r\n");
  std::string body;
  for (int i = 0; i < 90; ++i) body += "1;" + std::string(500, 'e') + "\r\nx\r\n";
  EXPECT_EQ(outcome(head + body, 64), "413");
  EXPECT_EQ(outcome(head + "1;" + std::string(2000, 'e')), "431");
  EXPECT_EQ(outcome(head + "0\r\nX: " + std::string(2000, 'e')), "431");
  // Each byte of a body in a chunk of its own is no abuse.
  body.clear();
  for (int i = 0; i < 100; ++i) body += "1\r\nx\r\n";
  EXPECT_EQ(outcome(head + body + "0\r\n\r\n", 64), "GET /a|" + std::string(100, 'x'));
}

TEST(RequestReader, LengthsThatAreNoneOrTwoAreRefused) {
  for (const std::string lines :
       {"Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: 5,6\r\n", "Content-Length: +5\r\n", "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n", "Content-Length: 5 5\r\n", "Content-Length: 5.0\r\n", "Content-Length:\r\n",
        "Content-Length: five\r\n", "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 99999999999999999999999\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"}) {
    EXPECT_EQ(outcome(header(lines, "POST / HTTP/1.1")), "400") << lines;
  }
}

TEST(RequestReader, TransferEncodingsThatSmuggleAreRefused) {
  for (const std::string lines :
       {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 5\r\n", "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n"}) {
    EXPECT_EQ(outcome(header(lines, "POST / HTTP/1.1")), "400") << lines;
  }
  for (const std::string lines :
       {"Transfer-Encoding: identity\r\n", "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding:\r\n",
        "Transfer-Encoding: \"chunked\"\r\n", "Transfer-Encoding: chunked,\r\n"}) {
    EXPECT_EQ(outcome(header(lines, "POST / HTTP/1.1")), "501") << lines;
  }
  EXPECT_EQ(outcome("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), "400");
  EXPECT_EQ(outcome(header("Transfer-Encoding:\tchunked\r\n") + "0\r\n\r\n"), "GET /a|") << "spaces around it are fine";
}

TEST(RequestReader, BytesThatAreNoHeaderAreRefusedAtTheFirstOne) {
  using namespace std::string_literals;
  for (const std::string& bytes :
       {"GET / HTTP/1.1\nHost: h\n\n"s, "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n"s,
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n"s, "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n"s,
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n\tb\r\n\r\n"s, "GET / HTTP/1.1\r\n Host: h\r\n\r\n"s,
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n"s, "GET / HTTP/1.1\r\nHost: h\r\nX: a\x01\r\n\r\n"s,
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\x7f\r\n\r\n"s, "GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"s,
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s, " GET / HTTP/1.1\r\nHost: h\r\n\r\n"s,
        "GET / HTTP/1.1\r\r\nHost: h\r\n\r\n"s, "\n\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"s,
        "\rGET / HTTP/1.1\r\nHost: h\r\n\r\n"s}) {
    EXPECT_EQ(outcome(bytes), "400") << bytes;
  }
  RequestReader reader(kHeader, kBody);
  EXPECT_EQ(reader.read("GET / HTTP/1.1\n"), 0U);
  EXPECT_EQ(reader.state(), State::refused) << "without waiting for the end of the header";
}

TEST(RequestReader, LinesThatAreNoneAreRefused) {
  for (const std::string first :
       {"GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", "GET /  HTTP/1.1", "GET / http/1.1", "GET / HTTP/1",
        "GET / HTTP/11", "GET / HTTP/1.1.1", "GET / FTP/1.1", "G@T / HTTP/1.1", "GET\t/ HTTP/1.1", "/ HTTP/1.1",
        "GET / /b HTTP/1.1", "GET /a b HTTP/1.1", "GET / HTTP/a.b"}) {
    EXPECT_EQ(outcome(header("", first)), "400") << first;
  }
  for (const std::string line : {"NoColon\r\n", ": empty name\r\n", "Bad Name: x\r\n", "X : y\r\n", "X\t: y\r\n",
                                 "(x): y\r\n", "X@: y\r\n", "\xc3\xa4: y\r\n"}) {
    EXPECT_EQ(outcome(header(line)), "400") << line;
  }
  EXPECT_EQ(outcome(header("X: \xc3\xa4 \xff\r\n")), "GET /a|") << "values may have other bytes";
}

TEST(RequestReader, OtherVersionsAreRefusedAsSuch) {
  for (const std::string first :
       {"GET / HTTP/2.0", "GET / HTTP/0.9", "GET / HTTP/3.0", "GET / HTTP/1.2", "PRI * HTTP/2.0"}) {
    EXPECT_EQ(outcome(header("", first)), "505") << first;
  }
}

TEST(RequestReader, TargetsAreReadInEveryForm) {
  EXPECT_EQ(outcome(header("", "GET http://other:80/b?c HTTP/1.1")), "GET /b|");
  EXPECT_EQ(outcome(header("", "OPTIONS * HTTP/1.1")), "OPTIONS *|");
  for (const std::string target :
       {"*", "b", "https://h/b", "http:///b", "/../x", "/%zz", "/\xc3\xa4", "/a#b", "h:80"}) {
    EXPECT_EQ(outcome(header("", "GET " + target + " HTTP/1.1")), "400") << target;
  }
  EXPECT_EQ(outcome(header("", "CONNECT h:80 HTTP/1.1")), "405");
  EXPECT_EQ(outcome(header("", "TRACE / HTTP/1.1")), "405");
}

TEST(RequestReader, TheAuthorityOfTheTargetIsTheHost) {
  RequestReader reader(kHeader, kBody);
  reader.read("GET http://evil.example:99/b HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_EQ(reader.state(), State::head);
  EXPECT_EQ(reader.request().header("host"), "evil.example:99");
}

TEST(RequestReader, TheHostMustBeOneAndThere) {
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\n\r\n"), "400");
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), "400");
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), "400");
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), "400");
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\nHost: user@h\r\n\r\n"), "400");
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), "GET /|");
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\nHost:\r\n\r\n"), "GET /|") << "empty is allowed by HTTP; the policy refuses it";
}

TEST(RequestReader, HeadersThatMayComeOnlyOnceDo) {
  for (const std::string name : {"Authorization", "Content-Type", "Origin"}) {
    EXPECT_EQ(outcome(header(name + ": a\r\n" + name + ": a\r\n")), "400") << name;
  }
}

TEST(RequestReader, ExpectationsAreKnownOrRefused) {
  RequestReader reader(kHeader, kBody);
  reader.read(header("Expect: 100-Continue\r\nContent-Length: 3\r\n", "POST / HTTP/1.1"));
  EXPECT_TRUE(reader.expects_continue());
  RequestReader without_body(kHeader, kBody);
  without_body.read(header("Expect: 100-continue\r\n"));
  EXPECT_FALSE(without_body.expects_continue());
  RequestReader old(kHeader, kBody);
  old.read("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_FALSE(old.expects_continue());
  EXPECT_EQ(outcome(header("Expect: 200-ok\r\n")), "417");
}

TEST(RequestReader, HeadersHaveALimit) {
  const std::string before = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
  const std::size_t room = kHeader - before.size() - 4;
  EXPECT_EQ(outcome(before + std::string(room, 'x') + "\r\n\r\n"), "GET /|");
  EXPECT_EQ(outcome(before + std::string(room + 1, 'x') + "\r\n\r\n"), "431");
  EXPECT_EQ(outcome(before + std::string(5000, 'x')), "431");
  EXPECT_EQ(outcome("GET /" + std::string(2000, 'x')), "414");
  std::string lines;
  for (int i = 0; i < 500; ++i) lines += "a: b\r\n";
  EXPECT_EQ(outcome(header(lines)), "431");
  std::string empty;
  for (int i = 0; i < 600; ++i) empty += "\r\n";
  EXPECT_EQ(outcome(empty, 64), "431");
}

TEST(RequestReader, WhatIsNotWholeIsNotARequest) {
  EXPECT_EQ(outcome("GET / HTTP/1.1\r\nHost: h\r\n"), "…");
  EXPECT_EQ(outcome("G"), "…");
  EXPECT_EQ(outcome(header("Content-Length: 5\r\n") + "hell"), "…");
  EXPECT_EQ(outcome(header("Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\n"), "…");
  EXPECT_EQ(outcome("\r\n"), "");
}

}  // namespace
}  // namespace routing::http::request_reader_test
