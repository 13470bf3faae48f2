#include "routing/core/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace routing {

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  std::size_t at = 0;
  while (at < text.size()) {
    const unsigned lead = byte(at);
    // Most of most texts: eight letters at a time.
    if (lead < 0x80 && text.size() - at >= 8) {
      std::uint64_t letters = 0;
      std::memcpy(&letters, text.data() + at, 8);
      if ((letters & 0x8080808080808080U) == 0) {
        at += 8;
        continue;
      }
    }
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || length > text.size() - at) return at;
    for (std::size_t next = 1; next < length; ++next) {
      if ((byte(at + next) & 0xC0U) != 0x80U) return at;
    }
    if (length >= 3) {
      // Not longer than needed, no halves of surrogate pairs, nothing beyond U+10FFFF.
      const unsigned second = byte(at + 1);
      if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return at;
      if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return at;
    }
    at += length;
  }
  return std::nullopt;
}

std::size_t incomplete_utf8_tail(std::string_view text) {
  for (std::size_t length = 1; length <= std::min<std::size_t>(3, text.size()); ++length) {
    const std::string_view tail = text.substr(text.size() - length);
    const auto lead = static_cast<unsigned char>(tail.front());
    if ((lead & 0xC0U) == 0x80U) continue;  // the lead is further in front
    const std::size_t whole = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (whole <= length) return 0;
    // If any bytes complete it, the lowest or the highest ones do: the rules exclude one end of the range only.
    for (const char next : {'\x80', '\xBF'}) {
      if (!first_invalid_utf8(std::string(tail).append(whole - length, next))) return length;
    }
    return 0;
  }
  return 0;
}

}  // namespace routing
