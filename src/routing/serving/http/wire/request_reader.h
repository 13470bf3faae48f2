// Bytes to requests, however they are cut. Beast's parser knows the grammar; what may be asked of this server is
// decided here:
//
//   400  bytes that are no HTTP (header_scan.h); targets as request_target.h says; no Host, or one that is no host; two
//   of
//        Host, Authorization, Content-Length, Content-Type, Expect, Origin or Transfer-Encoding, also equal ones;
//        Transfer-Encoding beside Content-Length or with HTTP/1.0; a body that is not chunked as it says
//   405  CONNECT and TRACE
//   413  Content-Length beyond the limit, before anything of the body is read; a chunked body once it is beyond
//   414, 431  a header beyond the limit, without or with its first line
//   417  an Expect that is not 100-continue
//   501  a Transfer-Encoding that is not "chunked"
//   505  HTTP that is neither 1.0 nor 1.1
//
// Empty lines before a request are skipped. Extensions of chunks and trailers are read and dropped; all that frames a
// chunked body may be eight times the largest body, so that a body cannot be drawn out for ever.
#pragma once

#include "routing/serving/http/wire/message.h"
#include "routing/serving/http/wire/refusal.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace routing::http {

class RequestReader {
 public:
  enum class State {
    header,    // still to come, or a part of it
    head,      // the header is there; read_body() is to be called
    body,      // part of it is to come
    complete,  // request() is whole
    refused,
  };

  RequestReader(std::size_t most_header_bytes, std::size_t most_body_bytes);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Reads on, and says how many bytes it took; the others are to be given again, with those that follow. Takes nothing
  // in the states `head`, `complete` and `refused`.
  std::size_t read(std::string_view bytes);

  // After `head`: the body is wanted. Becomes `body`, or `complete` where there is none.
  void read_body();

  State state() const;
  // Whether there was more than empty lines.
  bool begun() const;
  bool has_body() const;           // from `head` on
  bool expects_continue() const;   // likewise
  bool keeps_alive() const;        // likewise; whether the client wants to ask again on this connection
  Request& request();              // likewise; its body once complete
  std::size_t body_bytes() const;  // that were read
  const Refusal& refusal() const;  // of `refused`

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace routing::http
