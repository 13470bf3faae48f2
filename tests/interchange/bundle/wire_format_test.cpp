#include "routing/interchange/bundle/wire_format.h"

#include "support/message_of.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::wire_format_test {
namespace {

std::vector<WireField> fields_of(const std::string& message) {
  ByteCursor cursor(std::as_bytes(std::span(message)), "message");
  std::vector<WireField> fields;
  while (cursor.left() > 0) fields.push_back(next_field(cursor));
  return fields;
}

// The examples of Protocol Buffers' own description: field 1 is 150, field 2 is "testing".
TEST(WireFormat, HandWorkedMessage) {
  std::string message;
  append_number_field(message, 1, 150);
  append_text_field(message, 2, "testing");
  append_fixed32_field(message, 6, 0x04030201);
  EXPECT_EQ(message, std::string("\x08\x96\x01\x12\x07testing\x35\x01\x02\x03\x04", 17));
  const std::vector<WireField> fields = fields_of(message);
  ASSERT_EQ(fields.size(), 3U);
  EXPECT_EQ(fields[0].field, 1U);
  EXPECT_EQ(fields[0].number, 150U);
  EXPECT_EQ(fields[1].field, 2U);
  EXPECT_EQ(fields[1].kind, WireField::Kind::text);
  EXPECT_EQ(fields[1].text, "testing");
  EXPECT_EQ(fields[2].field, 6U);
  EXPECT_EQ(fields[2].number, 0x04030201U);
}

TEST(WireFormat, LeavesOutZerosButNotEmptyTexts) {
  std::string message;
  append_number_field(message, 1, 0);
  append_fixed32_field(message, 2, 0);
  append_text_field(message, 3, "");
  EXPECT_EQ(message, std::string("\x1a\x00", 2));
}

TEST(WireFormat, RefusesWhatIsNoField) {
  EXPECT_NE(message_of<FileError>([] { fields_of("\x0b"); }).find("kind 3"), std::string::npos);
  EXPECT_NE(message_of<FileError>([] { fields_of(std::string("\x00\x01", 2)); }).find("field number 0"),
            std::string::npos);
  EXPECT_THROW(fields_of("\x12\x07test"), FileError);
  EXPECT_EQ(fields_of(std::string("\x09\x01\x00\x00\x00\x00\x00\x00\x01", 9)).front().number, (1ULL << 56U) + 1);
}

}  // namespace
}  // namespace routing::wire_format_test
