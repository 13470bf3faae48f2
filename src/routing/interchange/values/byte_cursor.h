// Reads bytes of a file one after the other and never beyond its end. Numbers are little-endian.
#pragma once

#include "routing/core/error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace routing {

class ByteCursor {
 public:
  // `where` begins every message.
  ByteCursor(std::span<const std::byte> bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  std::size_t place() const { return place_; }
  std::size_t left() const { return bytes_.size() - place_; }
  const std::string& where() const { return where_; }

  std::span<const std::byte> take(std::uint64_t count) {
    require<FileError>(count <= left(), where_, ": ", count, " bytes were expected at byte ", place_, ", but ", left(),
                       " are left; the file is damaged or cut off, fetch it again");
    const auto taken = bytes_.subspan(place_, count);
    place_ += count;
    return taken;
  }
  std::string_view text(std::uint64_t count) {
    const auto taken = take(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)[0]); }
  std::uint64_t fixed(std::size_t bytes) {
    const auto taken = take(bytes);
    std::uint64_t value = 0;
    for (std::size_t index = bytes; index > 0; --index)
      value = value << 8U | std::to_integer<unsigned>(taken[index - 1]);
    return value;
  }
  // Seven bits per byte, the lowest first; the top bit says that more follow.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t next = byte();
      require<FileError>(shift < 63 || next <= 1, where_, ": the number at byte ", place_ - 1,
                         " has more than 64 bits; the file is damaged, fetch it again");
      value |= (next & 0x7FU) << shift;
      if (next < 0x80U) return value;
    }
    throw FileError(where_ + ": the number that ends at byte " + std::to_string(place_) +
                    " has more than ten bytes; the file is damaged, fetch it again");
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t place_ = 0;
  std::string where_;
};

}  // namespace routing
