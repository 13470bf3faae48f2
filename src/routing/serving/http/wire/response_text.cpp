#include "routing/serving/http/wire/response_text.h"

#include "routing/core/error.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace routing::http {
namespace {

struct Reason {
  int status;
  const char* text;
};
constexpr std::array kReasons{
    Reason{200, "OK"},
    Reason{204, "No Content"},
    Reason{301, "Moved Permanently"},
    Reason{302, "Found"},
    Reason{303, "See Other"},
    Reason{304, "Not Modified"},
    Reason{307, "Temporary Redirect"},
    Reason{308, "Permanent Redirect"},
    Reason{400, "Bad Request"},
    Reason{401, "Unauthorized"},
    Reason{403, "Forbidden"},
    Reason{404, "Not Found"},
    Reason{405, "Method Not Allowed"},
    Reason{406, "Not Acceptable"},
    Reason{408, "Request Timeout"},
    Reason{409, "Conflict"},
    Reason{411, "Length Required"},
    Reason{413, "Content Too Large"},
    Reason{414, "URI Too Long"},
    Reason{415, "Unsupported Media Type"},
    Reason{417, "Expectation Failed"},
    Reason{422, "Unprocessable Content"},
    Reason{429, "Too Many Requests"},
    Reason{431, "Request Header Fields Too Large"},
    Reason{500, "Internal Server Error"},
    Reason{501, "Not Implemented"},
    Reason{503, "Service Unavailable"},
    Reason{504, "Gateway Timeout"},
    Reason{505, "HTTP Version Not Supported"},
};

// Empty for others: clients read the number.
const char* reason_of(int status) {
  const auto* const found =
      std::find_if(kReasons.begin(), kReasons.end(), [&](const Reason& reason) { return reason.status == status; });
  return found == kReasons.end() ? "" : found->text;
}

bool is_name(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           kOthers.find(letter) != std::string_view::npos;
  });
}

bool is_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) >= 0x20 || letter == '\t') && letter != 0x7f;
  });
}

void add_header(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text += ": ";
  text += value;
  text += "\r\n";
}

}  // namespace

void check_headers(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    require<InputError>(is_name(name), "a header of an answer is called \"", name, "\", which is no name");
    require<InputError>(is_value(value), "the header ", name,
                        " of an answer has a line break or another control character; leave it out");
    for (const char* own : {"connection", "content-length", "content-type", "date", "transfer-encoding"}) {
      require<InputError>(!same_word(name, own), "the header ", name, " is set by the server; leave it out");
    }
  }
}

void check_response(const Response& response) {
  require<InputError>(response.status >= 200 && response.status <= 599, "the status of an answer is ", response.status,
                      ", but must be 200 to 599");
  require<InputError>(is_value(response.content_type),
                      "the content type of an answer has a line break or another control character");
  check_headers(response.headers);
}

bool has_body(int status) {
  return status != 204 && status != 304;
}

std::string head_text(const Response& response, const Headers& extra, const HeadOptions& options) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " + reason_of(response.status) + "\r\n";
  add_header(text, "Date", http_date(std::time(nullptr)));
  if (has_body(response.status)) {
    if (!response.content_type.empty()) add_header(text, "Content-Type", response.content_type);
    if (options.framing == Framing::length) add_header(text, "Content-Length", std::to_string(options.length));
    if (options.framing == Framing::chunks) add_header(text, "Transfer-Encoding", "chunked");
  }
  for (const Headers* headers : {&response.headers, &extra}) {
    for (const auto& [name, value] : *headers) add_header(text, name, value);
  }
  if (options.close) {
    add_header(text, "Connection", "close");
  } else if (options.minor_version == 0) {
    add_header(text, "Connection", "keep-alive");
  }
  return text += "\r\n";
}

std::string chunk_size_line(std::uint64_t size) {
  std::array<char, 24> text{};
  const int length = std::snprintf(text.data(), text.size(), "%llx\r\n", static_cast<unsigned long long>(size));
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string http_date(std::time_t time) {
  constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 64> text{};
  // Not strftime(), which writes days and months in the language of the user.
  const int length = std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                                   kDays.at(static_cast<std::size_t>(parts.tm_wday)), parts.tm_mday,
                                   kMonths.at(static_cast<std::size_t>(parts.tm_mon)), parts.tm_year + 1900,
                                   parts.tm_hour, parts.tm_min, parts.tm_sec);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace routing::http
