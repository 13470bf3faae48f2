// Where the header of a request ends, and whether its bytes can be one.
//
// Parsers differ in what they forgive: a line that ends without CR, a line that goes on in the next one (obs-fold), a
// NUL. Such differences between two programs in a row are how requests are smuggled, so nothing of that is let through
// to the parser, and it is refused at its first byte.
#pragma once

#include "routing/serving/http/wire/refusal.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace routing::http {

class HeaderScan {
 public:
  explicit HeaderScan(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // Looks on; `bytes` are the header from its beginning, longer at each call. True once its end was found.
  bool scan(std::string_view bytes);

  // How many bytes it has, with the empty line; once scan() was true.
  std::size_t size() const { return scanned_; }
  const std::optional<Refusal>& refusal() const { return refusal_; }

 private:
  bool refuse(int status, const char* message);

  std::size_t most_bytes_;
  std::size_t scanned_ = 0;
  std::size_t line_ = 0;       // where the line begins that is being looked at
  bool after_return_ = false;  // the byte before was CR
  std::optional<Refusal> refusal_;
};

}  // namespace routing::http
