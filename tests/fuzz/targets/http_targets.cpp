// Requests as bytes, however they are cut, and the words in them. scripts/fuzz-http sends them over sockets.
#include "fuzz/targets.h"
#include "routing/core/base64.h"
#include "routing/core/utf8.h"
#include "routing/serving/http/wire/request_reader.h"
#include "routing/serving/http/wire/request_target.h"
#include "routing/serving/http/wire/response_text.h"
#include "serve/page/gunzip.h"

#include <stdexcept>

namespace routing::fuzz {
namespace {

constexpr std::size_t kHeaderBytes = 400;
constexpr std::size_t kBodyBytes = 100;

void check(const http::Request& request) {
  hold(!first_invalid_utf8(request.path), "a path that is not UTF-8");
  hold(request.path == "*" || request.path.starts_with('/'), "a path without its slash");
  hold(request.body.size() <= kBodyBytes, "a body beyond the limit");
  for (const std::string& segment : request.segments) {
    hold(segment != ".." && segment != "." && segment.find('\0') == std::string::npos, "a path that climbs");
    hold(!segment.starts_with("../") && !segment.ends_with("/..") && segment.find("/../") == std::string::npos,
         "a path that climbs");
  }
  http::query_value(request, "after");
}

std::string told(const http::Request& request) {
  std::string text =
      request.method + ' ' + request.path + '?' + request.query + ' ' + std::to_string(request.minor_version) + '\n';
  for (const auto& [name, value] : request.headers) text += name + ": " + value + '\n';
  return text + '\n' + request.body + '\n';
}

// All requests of a connection, which comes in pieces of these sizes in turn.
std::string all_requests(std::string_view bytes, const std::vector<std::size_t>& pieces) {
  std::string all;
  auto reader = std::make_unique<http::RequestReader>(kHeaderBytes, kBodyBytes);
  std::size_t taken = 0, there = 0;
  for (std::size_t piece = 0; there < bytes.size(); ++piece) {
    there = std::min(bytes.size(), there + pieces[piece % pieces.size()]);
    while (true) {
      const std::size_t read = reader->read(bytes.substr(taken, there - taken));
      hold(read <= there - taken, "more was read than there is");
      taken += read;
      using State = http::RequestReader::State;
      if (reader->state() == State::head) {
        check(reader->request());
        reader->read_body();
      } else if (reader->state() == State::complete) {
        check(reader->request());
        all += told(reader->request()) + (reader->keeps_alive() ? "stays\n" : "goes\n");
        reader = std::make_unique<http::RequestReader>(kHeaderBytes, kBodyBytes);
        if (taken == there) break;
      } else if (reader->state() == State::refused) {
        hold(reader->refusal().status >= 400 && !reader->refusal().message.empty(), "a refusal without a word");
        return all + "refused " + std::to_string(reader->refusal().status);
      } else {
        break;
      }
    }
  }
  return all;
}

void run_requests(Bytes bytes) {
  InputCutter input(bytes);
  std::vector<std::size_t> pieces;
  for (std::size_t count = 1 + input.byte() % 3; count > 0; --count) pieces.push_back(1 + input.byte());
  const std::string stream = input.rest();
  const std::string whole = all_requests(stream, {stream.size() + 1});
  const std::string cut = all_requests(stream, pieces);
  hold(whole == cut, "cut in pieces it says something else:\n" + whole + "\n--- in pieces ---\n" + cut);
}

void run_words(Bytes bytes) {
  InputCutter input(bytes);
  const std::uint8_t what = input.byte() % 5;
  const std::string text = input.rest();
  if (what == 0) {
    http::Target target;
    if (!http::read_target("GET", text, target)) {
      hold(!first_invalid_utf8(target.path) && target.path.starts_with('/'), "a path that is none");
    }
  } else if (what == 1) {
    http::Request request;
    request.query = text;
    http::query_value(request, "after");
    const auto decoded = http::percent_decoded(text, http::Plus::is_space);
    hold(!decoded || decoded->size() <= text.size(), "decoded it is longer");
  } else if (what == 2) {
    const std::optional<std::string> decoded = from_base64(text);
    hold(!decoded || to_base64(*decoded) == text, "two texts of the same bytes");
    hold(from_base64(to_base64(text)) == text, "base64 loses bytes");
  } else if (what == 3) {
    takes<std::runtime_error>([&] { gunzip(text); });
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const http::Response response{.headers = {{text.substr(0, colon), text.substr(std::min(text.size(), colon + 1))}}};
    if (!takes([&] { http::check_response(response); })) return;
    const std::string head = http::head_text(response, {}, {});
    hold(head.find("\r\n\r\n") == head.size() - 4, "a header that ends too early");
  }
}

std::vector<std::string> request_seeds() {
  const std::string cuts = literal("\x01\x07\x02");
  return {
      "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /runs/a%2Fb/metrics?after=3 HTTP/1.1\r\nHost: [::1]:80\r\nConnection: "
      "close\r\n\r\n" +
          cuts,
      "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbody" + cuts,
      "POST /e HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nTrailer: t\r\n\r\n" +
          cuts,
      "GET http://host:80/x HTTP/1.0\r\n\r\n" + cuts,
      "OPTIONS * HTTP/1.1\r\nHost: h\r\nOrigin: http://h\r\n\r\n" + cuts,
      "HEAD / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n" + cuts};
}

std::vector<std::string> word_seeds() {
  const std::string packed = literal(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x20\x30\x3a\x36\x06\x00\x00\x00");
  return {std::string("/runs/exp%2Fa/x?after=3&b=%C3%A9") + '\0',
          "after=a+b%20c&after=&x" + std::string(1, '\1'),
          "aGVsbG8=" + std::string(1, '\2'),
          packed + '\3',
          "X-Note: some words" + std::string(1, '\4'),
          std::string("http://u@h:1/..%2f./") + '\0'};
}

}  // namespace

FuzzTarget http_request_target() {
  return {"http_request", run_requests, request_seeds};
}
FuzzTarget http_words_target() {
  return {"http_words", run_words, word_seeds};
}

}  // namespace routing::fuzz
