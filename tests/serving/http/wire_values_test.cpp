// Targets, headers, queries, and answers as bytes.
#include "routing/core/error.h"
#include "routing/serving/http/wire/message.h"
#include "routing/serving/http/wire/request_target.h"
#include "routing/serving/http/wire/response_text.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::http::wire_values_test {
namespace {

using Segments = std::vector<std::string>;

Target target_of(const std::string& text, const std::string& method = "GET") {
  Target target;
  const std::optional<Refusal> refusal = read_target(method, text, target);
  if (refusal) ADD_FAILURE() << text << ": " << refusal->message;
  return target;
}

TEST(RequestTarget, IsCutAtItsSlashesAndDecodedOnce) {
  EXPECT_EQ(target_of("/").path, "/");
  EXPECT_EQ(target_of("/").segments, Segments{""});
  EXPECT_EQ(target_of("/v1/models").segments, (Segments{"v1", "models"}));
  EXPECT_EQ(target_of("/a//b/").segments, (Segments{"a", "", "b", ""}));
  EXPECT_EQ(target_of("/a//b/").path, "/a//b/");
  const Target run = target_of("/api/runs/exp%2fa%20b%C3%A4/x");
  EXPECT_EQ(run.segments, (Segments{"api", "runs", "exp/a bä", "x"}));
  EXPECT_EQ(run.path, "/api/runs/exp/a bä/x");
  EXPECT_EQ(target_of("/%2541").path, "/%41") << "once, not twice";
  EXPECT_EQ(target_of("/a+b").path, "/a+b") << "a plus is a space in forms only";
  EXPECT_EQ(target_of("/...").path, "/...");
  EXPECT_EQ(target_of("/.hidden/a..b").path, "/.hidden/a..b");
}

TEST(RequestTarget, QueriesStayAsTheyCame) {
  EXPECT_EQ(target_of("/a?x=%20&y=/../?").query, "x=%20&y=/../?");
  EXPECT_EQ(target_of("/a?x=%20&y=/../?").path, "/a");
  EXPECT_EQ(target_of("/a?").query, "");
}

TEST(RequestTarget, AuthoritiesAreTakenOff) {
  EXPECT_EQ(target_of("http://h:80/a?b").authority, "h:80");
  EXPECT_EQ(target_of("http://h:80/a?b").path, "/a");
  EXPECT_EQ(target_of("HTTP://h").path, "/");
  EXPECT_EQ(target_of("http://h?q").query, "q");
  EXPECT_EQ(target_of("/a").authority, "");
  EXPECT_EQ(target_of("*", "OPTIONS").path, "*");
}

TEST(RequestTarget, WhatClimbsHidesOrIsNoTextIsRefused) {
  Target target;
  for (const std::string text : {"/..",        "/../a",
                                 "/a/..",      "/a/../b",
                                 "/.",         "/a/./b",
                                 "/%2e%2e/a",  "/%2E./a",
                                 "/.%2e",      "/a%2f..%2fb",
                                 "/a%2f..",    "/..%2fa",
                                 "/a%2F.",     "/a%00",
                                 "/a%0a",      "/a%7f",
                                 "/%",         "/%4",
                                 "/%4g",       "/%g4",
                                 "/%ff",       "/%c3",
                                 "/%ed%a0%80", "/a?%",
                                 "/a?%zz",     "/a?%ff",
                                 "/a?%00",     "/a#b",
                                 "/a b",       "/\x01",
                                 "/\xc3\xa4",  "*",
                                 "",           "a",
                                 "ftp://h/a",  "http://",
                                 "http:///a",  "http://user@h/a",
                                 "//h\\"}) {
    const std::optional<Refusal> refusal = read_target("GET", text, target);
    if (text == "//h\\") {
      EXPECT_FALSE(refusal) << "an empty segment and a backslash are letters like others";
      continue;
    }
    ASSERT_TRUE(refusal) << text;
    EXPECT_EQ(refusal->status, 400) << text;
  }
}

TEST(PercentDecoding, KnowsBothMeaningsOfPlus) {
  EXPECT_EQ(percent_decoded("a+b%2B", Plus::is_space), "a b+");
  EXPECT_EQ(percent_decoded("a+b%2b", Plus::is_plus), "a+b+");
  EXPECT_EQ(percent_decoded("%41%5a", Plus::is_plus), "AZ");
  EXPECT_FALSE(percent_decoded("a%4", Plus::is_plus).has_value());
  EXPECT_FALSE(percent_decoded("%", Plus::is_plus).has_value());
}

TEST(Queries, GiveTheFirstValueOfAName) {
  Request request;
  request.query = "after=3&name=a+b%26c&empty=&flag&after=4&%61=x=y";
  EXPECT_EQ(query_value(request, "after"), "3");
  EXPECT_EQ(query_value(request, "name"), "a b&c");
  EXPECT_EQ(query_value(request, "empty"), "");
  EXPECT_EQ(query_value(request, "flag"), "");
  EXPECT_EQ(query_value(request, "a"), "x=y");
  EXPECT_FALSE(query_value(request, "fla").has_value());
  EXPECT_FALSE(query_value(Request{}, "after").has_value());
}

TEST(HeaderLookup, IgnoresCaseAndJoins) {
  const Headers headers{{"Accept", "a"}, {"host", "h"}, {"accept", "b"}};
  EXPECT_EQ(find_header(headers, "ACCEPT"), "a, b");
  EXPECT_EQ(find_header(headers, "Host"), "h");
  EXPECT_FALSE(find_header(headers, "accep").has_value());
  EXPECT_TRUE(same_word("Bearer", "bEARER"));
  EXPECT_FALSE(same_word("Bearer", "Bearers"));
  EXPECT_FALSE(same_word("[", "{")) << "only letters have two cases";
}

// Without the line of the date, which is another each second.
std::string without_date(const std::string& head) {
  const std::size_t begin = head.find("Date: ");
  return head.substr(0, begin) + head.substr(head.find("\r\n", begin) + 2);
}

TEST(ResponseHead, HasWhatItsFramingNeeds) {
  const Response response{.status = 200, .content_type = "text/plain", .headers = {{"X-A", "b"}}};
  EXPECT_EQ(without_date(head_text(response, {{"X-C", "d"}}, {.length = 12})),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nX-A: b\r\nX-C: d\r\n\r\n");
  EXPECT_EQ(without_date(head_text(response, {}, {.framing = Framing::chunks, .close = true})),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n"
            "Connection: close\r\n\r\n");
  EXPECT_EQ(without_date(head_text({.status = 299, .content_type = ""}, {},
                                   {.framing = Framing::until_close, .close = true, .minor_version = 0})),
            "HTTP/1.1 299 \r\nConnection: close\r\n\r\n");
  EXPECT_EQ(without_date(head_text({.status = 404}, {}, {.length = 0, .minor_version = 0})),
            "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 0\r\n"
            "Connection: keep-alive\r\n\r\n");
  EXPECT_EQ(without_date(head_text({.status = 204}, {}, {.length = 0})), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_NE(head_text(response, {}, {}).find("\r\nDate: "), std::string::npos);
}

TEST(ResponseHead, DatesAreAsHttpWritesThem) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST(ResponseHead, ChunksHaveTheirSizeInHexadecimal) {
  EXPECT_EQ(chunk_size_line(26), "1a\r\n");
  EXPECT_EQ(chunk_size_line(0x123456789), "123456789\r\n");
}

TEST(ResponseChecks, RefuseWhatWouldBreakTheAnswer) {
  check_response({.headers = {{"X-A", "b\tc ä"}}});
  for (const Response& response :
       {Response{.status = 199}, Response{.status = 600}, Response{.status = 100},
        Response{.content_type = "text/plain\r\nX: y"}, Response{.headers = {{"X", "a\nb"}}},
        Response{.headers = {{"X", "a\rb"}}}, Response{.headers = {{"X", std::string("a\0b", 3)}}},
        Response{.headers = {{"", "a"}}}, Response{.headers = {{"a b", "a"}}}, Response{.headers = {{"a:", "a"}}},
        Response{.headers = {{"Content-Length", "3"}}}, Response{.headers = {{"connection", "close"}}},
        Response{.headers = {{"TRANSFER-ENCODING", "x"}}}}) {
    EXPECT_THROW(check_response(response), InputError) << response.status << response.content_type;
  }
  EXPECT_NE(message_of<InputError>([] {
              check_response({.headers = {{"X-Name", "a\nb"}}});
            }).find("X-Name"),
            std::string::npos);
  EXPECT_THROW(check_headers({{"Date", "now"}}), InputError);
}

TEST(Bodies, BelongToAllStatusesButTwo) {
  EXPECT_TRUE(has_body(200));
  EXPECT_TRUE(has_body(404));
  EXPECT_FALSE(has_body(204));
  EXPECT_FALSE(has_body(304));
}

}  // namespace
}  // namespace routing::http::wire_values_test
