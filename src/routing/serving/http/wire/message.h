// Requests and answers as plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace routing::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

// Whether they differ in the case of ASCII letters at most.
bool same_word(std::string_view one, std::string_view other);

// The one called `name`, whatever the case of its letters; several of one name are joined by ", ".
std::optional<std::string> find_header(const Headers& headers, std::string_view name);

// A request that was read completely and checked; the rules are in request_reader.h and request_target.h.
struct Request {
  std::string method;  // as it came, "GET"; methods are words with case
  // Percent-decoded once, UTF-8, without control characters and without "." or ".." as a part; begins with '/' (or is
  // "*", of OPTIONS).
  std::string path;
  // The path cut at its slashes, then decoded: "/runs/exp%2Fa/x" is {"runs", "exp/a", "x"}, while `path` cannot tell
  // that slash from the others. "/" is {""}.
  std::vector<std::string> segments;
  std::string query;  // what follows '?', as it came; query_value() reads it
  // Names in small letters, in their order. "host" is the authority of the target where that has one.
  Headers headers;
  std::string body;
  int minor_version = 1;  // of HTTP/1
  std::string peer;       // "127.0.0.1:51412"

  std::optional<std::string> header(std::string_view name) const { return find_header(headers, name); }
};

// The first value of this name in the query, decoded as forms are: percent-encoding, and '+' for a space. "a" and "a="
// are the empty text.
std::optional<std::string> query_value(const Request& request, std::string_view name);

// Date, Content-Length, Transfer-Encoding and Connection are the transport's own; naming them under `headers` is an
// error.
struct Response {
  int status = 200;
  std::string content_type = "application/json";  // empty: none
  std::string body = {};
  Headers headers = {};
};

}  // namespace routing::http
