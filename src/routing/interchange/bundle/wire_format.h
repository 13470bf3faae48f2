// The few parts of Protocol Buffers' wire format that TensorFlow's checkpoints need: fields with numbers, varints,
// 32-bit numbers and texts.
#pragma once

#include "routing/interchange/values/byte_cursor.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace routing {

void append_varint(std::string& text, std::uint64_t value);
void append_fixed32(std::string& text, std::uint32_t value);

// Fields of a message. Zeros are left out, as proto3 does.
void append_number_field(std::string& message, std::uint32_t field, std::uint64_t value);
void append_fixed32_field(std::string& message, std::uint32_t field, std::uint32_t value);
void append_text_field(std::string& message, std::uint32_t field, std::string_view value);  // also when empty

struct WireField {
  enum class Kind { number, text };
  std::uint32_t field = 0;
  Kind kind = Kind::number;
  std::uint64_t number = 0;    // varints and numbers of fixed length
  std::string_view text = {};  // texts and messages inside; lives as long as the bytes of the cursor
};

// The next field of a message. Throws a FileError if it is none.
WireField next_field(ByteCursor& message);

}  // namespace routing
