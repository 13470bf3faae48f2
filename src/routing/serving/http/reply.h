// Where the answer to one request goes.
#pragma once

#include "routing/serving/http/wire/message.h"

#include <functional>
#include <memory>
#include <string>

namespace routing::http {

// Exactly one of
//
//   send(whole)                     an answer whose length is known
//   begin(head) write(…)… end()     a streamed one: chunked, or until the connection closes where the client is
//   HTTP/1.0
//
// Any thread may call, one at a time; calls after the answer is complete, or after the client is gone, do nothing. The
// handle may outlive connection and server. Pieces that come in quick succession go out together. If the last handle is
// dropped before the answer is complete, the client gets 500, or a stream that visibly breaks off.
//
// Of HEAD only the head goes out; 204 and 304 have no body either.
class Reply {
 public:
  Reply() = default;
  virtual ~Reply() = default;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  // Headers for the answer, whatever it will be; nothing once it has begun.
  virtual void add_headers(Headers headers) = 0;

  // InputError if the response cannot be written as HTTP (a line break in a header, say); then nothing was sent.
  virtual void send(Response response) = 0;
  virtual void begin(Response head) = 0;  // a body in it is the first piece

  // False once the client is gone, or reads so slowly that more than Limits::unsent_bytes would wait: then the
  // connection is closed. An empty piece only asks.
  virtual bool write(std::string piece) = 0;
  virtual void end() = 0;

  // Whether nobody waits for this answer any more.
  virtual bool gone() const = 0;

  // Called once, on the I/O thread, if the client goes before it has the whole answer: it closed or reset the
  // connection, did not read in time, or the server was stopped. Not called (and dropped) once the answer is complete,
  // or when the server has ended: then gone() says so. Takes the place of an earlier one. Must not block.
  virtual void when_gone(std::function<void()> function) = 0;
};

}  // namespace routing::http
