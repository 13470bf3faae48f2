// Bytes as letters (RFC 4648), for what is sent as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace routing {

std::string to_base64(std::string_view bytes);
// Nothing for what is not base64: other letters, a length that is no multiple of four, or bits that say nothing and are
// not zero, so that equal bytes have equal texts.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace routing
