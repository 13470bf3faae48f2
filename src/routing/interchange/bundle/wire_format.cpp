#include "routing/interchange/bundle/wire_format.h"

namespace routing {
namespace {

enum : std::uint32_t { kVarint = 0, kFixed64 = 1, kText = 2, kFixed32 = 5 };

void append_tag(std::string& message, std::uint32_t field, std::uint32_t kind) {
  append_varint(message, field << 3U | kind);
}

}  // namespace

void append_varint(std::string& text, std::uint64_t value) {
  for (; value >= 0x80U; value >>= 7U) text += static_cast<char>((value & 0x7FU) | 0x80U);
  text += static_cast<char>(value);
}

void append_fixed32(std::string& text, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) text += static_cast<char>(value >> shift & 0xFFU);
}

void append_number_field(std::string& message, std::uint32_t field, std::uint64_t value) {
  if (value == 0) return;
  append_tag(message, field, kVarint);
  append_varint(message, value);
}

void append_fixed32_field(std::string& message, std::uint32_t field, std::uint32_t value) {
  if (value == 0) return;
  append_tag(message, field, kFixed32);
  append_fixed32(message, value);
}

void append_text_field(std::string& message, std::uint32_t field, std::string_view value) {
  append_tag(message, field, kText);
  append_varint(message, value.size());
  message += value;
}

WireField next_field(ByteCursor& message) {
  const std::uint64_t tag = message.varint();
  WireField field{.field = static_cast<std::uint32_t>(tag >> 3U)};
  require<FileError>(tag >> 3U != 0 && tag >> 32U == 0, message.where(), ": a message has the field number ", tag >> 3U,
                     "; the file is damaged, fetch it again");
  switch (static_cast<std::uint32_t>(tag & 7U)) {
    case kVarint:
      field.number = message.varint();
      return field;
    case kFixed64:
      field.number = message.fixed(8);
      return field;
    case kFixed32:
      field.number = message.fixed(4);
      return field;
    case kText:
      field.kind = WireField::Kind::text;
      field.text = message.text(message.varint());
      return field;
    default:
      throw FileError(message.where() + ": field " + std::to_string(field.field) + " of a message has the kind " +
                      std::to_string(tag & 7U) + ", which is none; the file is damaged, fetch it again");
  }
}

}  // namespace routing
