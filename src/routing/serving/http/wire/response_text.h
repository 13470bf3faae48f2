// Answers as bytes.
#pragma once

#include "routing/serving/http/wire/message.h"

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

namespace routing::http {

// InputError for what would not be an answer when it is written: a status that is not 200 … 599, a header whose name is
// no word or whose value has a line break or another control character, a header that is the transport's own.
void check_response(const Response& response);
void check_headers(const Headers& headers);

// 204 and 304 have no body, whatever is asked.
bool has_body(int status);

enum class Framing {
  length,  // Content-Length
  chunks,
  until_close,  // streams to HTTP/1.0
};

struct HeadOptions {
  Framing framing = Framing::length;
  std::uint64_t length = 0;  // of the body; that of HEAD counts too
  bool close = false;        // the connection ends after it
  int minor_version = 1;     // the client's
};
// Status line, headers and the empty line. `extra` are headers beside the response's own.
std::string head_text(const Response& response, const Headers& extra, const HeadOptions& options);

// The size of the next chunk as hexadecimal number and CR LF; a chunk is that, its bytes, and CR LF.
std::string chunk_size_line(std::uint64_t size);

// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(std::time_t time);

}  // namespace routing::http
