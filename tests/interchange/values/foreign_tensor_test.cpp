#include "routing/interchange/values/foreign_tensor.h"

#include "routing/interchange/values/byte_cursor.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::foreign_tensor_test {
namespace {

ByteCursor cursor_of(const std::string& bytes) {
  return {std::as_bytes(std::span(bytes)), "file"};
}

TEST(ForeignTensor, CountsNumbersOfAShapeAndRefusesTooMany) {
  EXPECT_EQ(count_of({}), 1U);
  EXPECT_EQ(count_of({3, 4}), 12U);
  EXPECT_EQ(count_of({std::int64_t{1} << 40, std::int64_t{1} << 40, 0}), 0U);
  EXPECT_EQ(count_of({3, -1}), std::nullopt);
  EXPECT_EQ(count_of({0, -1}), std::nullopt);
  EXPECT_EQ(count_of({std::int64_t{1} << 31, std::int64_t{1} << 31}), std::uint64_t{1} << 62U);
  EXPECT_EQ(count_of({std::int64_t{1} << 31, (std::int64_t{1} << 31) + 1}), std::nullopt);
}

TEST(ForeignTensor, NamesTypesAndShapes) {
  EXPECT_EQ(dimensions_text({}), "[]");
  EXPECT_EQ(dimensions_text({2, 3}), "[2, 3]");
  EXPECT_EQ(bytes_of(NumberType::float32), 4U);
  EXPECT_EQ(bytes_of(NumberType::bfloat16), 2U);
  EXPECT_EQ(bytes_of(NumberType::int64), 8U);
  EXPECT_EQ(bytes_of(NumberType::boolean), 1U);
  EXPECT_STREQ(name_of(NumberType::float16), "float16");
  EXPECT_STREQ(name_of(NumberType::boolean), "bool");
}

TEST(ByteCursor, ReadsNumbersWithTheLowestByteFirst) {
  const std::string bytes("\x01\x02\x03\x04\xac\x02text", 10);
  ByteCursor cursor = cursor_of(bytes);
  EXPECT_EQ(cursor.fixed(2), 0x0201U);
  EXPECT_EQ(cursor.byte(), 3U);
  EXPECT_EQ(cursor.place(), 3U);
  EXPECT_EQ(cursor.byte(), 4U);
  EXPECT_EQ(cursor.varint(), 300U);  // 0xac 0x02: 0x2c + 2 * 128
  EXPECT_EQ(cursor.text(4), "text");
  EXPECT_EQ(cursor.left(), 0U);
}

TEST(ByteCursor, StopsAtTheEndAndAtNumbersThatAreTooLong) {
  ByteCursor short_file = cursor_of("abc");
  EXPECT_EQ(message_of<FileError>([&] { short_file.take(4); }),
            "file: 4 bytes were expected at byte 0, but 3 are left; the file is damaged or cut off, fetch it again");
  EXPECT_EQ(short_file.left(), 3U);
  const std::string largest("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
  EXPECT_EQ(cursor_of(largest).varint(), ~std::uint64_t{0});
  const std::string too_large("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
  EXPECT_THROW(cursor_of(too_large).varint(), FileError);
  const std::string endless(20, '\x80');
  EXPECT_THROW(cursor_of(endless).varint(), FileError);
}

}  // namespace
}  // namespace routing::foreign_tensor_test
