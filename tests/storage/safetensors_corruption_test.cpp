// Files that are damaged or made with bad intent: each is refused with its own message.
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/utf8.h"
#include "routing/storage/safetensors.h"
#include "routing/storage/safetensors_header.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace routing::safetensors_corruption_test {
namespace {

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + rest;
}

std::string file_of(const std::string& header, std::size_t data_bytes = 0) {
  return with_length(header.size(), header + std::string(data_bytes, '\1'));
}

// Eight floats under the name x, with one field replaced by what is given.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"("x":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return file_of("{" + entry(dtype, shape, offsets) + "}", 32);
}

std::string two(const std::string& first_offsets, const std::string& second_offsets, std::size_t data_bytes) {
  return file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first_offsets +
                     R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second_offsets + "}}",
                 data_bytes);
}

struct Corruption {
  std::string bytes;
  std::string message;  // between the path and the remedy
};

const std::string kDamaged = "; the file is damaged or no safetensors file, copy or write it anew";

std::vector<Corruption> corruptions() {
  const std::string good_entry = entry("\"F32\"", "[2,4]", "[0,32]");
  const std::string too_long(150, 'n');
  std::vector<Corruption> all;
  // The length and the file around it.
  all.push_back({"", "the file has 0 bytes, too few for the 8 bytes of the header's length"});
  all.push_back({"\2\0\0", "the file has 1 bytes, too few for the 8 bytes of the header's length"});
  all.push_back({std::string(7, '\0'), "the file has 7 bytes, too few for the 8 bytes of the header's length"});
  all.push_back({with_length(0, ""), "the header does not begin with '{'"});
  all.push_back({with_length(3, "{}"), "the header is said to have 3 bytes, but only 2 follow"});
  all.push_back(
      {with_length(100'000'001, "{}"), "the header is said to have 100000001 bytes, more than the allowed 100000000"});
  all.push_back({with_length(~0ULL, "{}"),
                 "the header is said to have 18446744073709551615 bytes, more than the allowed 100000000"});
  // The JSON.
  all.push_back({file_of(" {}"), "the header does not begin with '{'"});
  all.push_back({file_of("[]"), "the header does not begin with '{'"});
  all.push_back({file_of("\xEF\xBB\xBF{}"), "the header does not begin with '{'"});
  all.push_back({file_of("{"), "the header is not a JSON object: it goes wrong at its byte 2"});
  all.push_back({file_of("{} {}"), "the header is not a JSON object: it goes wrong at its byte 4"});
  all.push_back({file_of("{},"), "the header is not a JSON object: it goes wrong at its byte 3"});
  all.push_back({file_of("{/**/}"), "the header is not a JSON object: it goes wrong at its byte 2"});
  all.push_back({file_of("{\"x\":NaN}"), "the header is not a JSON object: it goes wrong at its byte 6"});
  all.push_back({file_of("{\"\\ud800\":{}}"), "the header is not a JSON object: it goes wrong at its byte 9"});
  all.push_back({file_of(std::string("{}\0{}", 5)), "the header holds a zero byte at its byte 2"});
  all.push_back({file_of("{\"\xFF\":1}"), "the header is not UTF-8 at its byte 2"});
  all.push_back({file_of("{\"\xED\xA0\x80\":1}"), "the header is not UTF-8 at its byte 2"});
  all.push_back({file_of("{}\xC3"), "the header is not UTF-8 at its byte 2"});
  // Keys twice, at each level, also when spelled differently.
  all.push_back({file_of("{" + good_entry + "," + good_entry + "}", 32), "the name 'x' is there twice"});
  all.push_back({file_of(R"({"\u0078":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)" + good_entry + "}", 32),
                 "the name 'x' is there twice"});
  all.push_back({file_of(R"({"__metadata__":{},"__metadata__":{}})"), "the name '__metadata__' is there twice"});
  all.push_back({file_of(R"({"__metadata__":{"k":"1","k":"2"}})"), "the key 'k' of __metadata__ is there twice"});
  all.push_back({file_of(R"({"x":{"dtype":"U8","dtype":"U8"}})"), "tensor 'x' has the field 'dtype' twice"});
  // The metadata.
  all.push_back({file_of(R"({"__metadata__":[]})"), "__metadata__ must be an object of texts, but is an array"});
  all.push_back({file_of(R"({"__metadata__":null})"), "__metadata__ must be an object of texts, but is null"});
  all.push_back(
      {file_of(R"({"__metadata__":{"k":1}})"), "the key 'k' of __metadata__ must be a text, but is the number 1"});
  all.push_back(
      {file_of(R"({"__metadata__":{"k":{}}})"), "the key 'k' of __metadata__ must be a text, but is an object"});
  // The fields of an entry.
  all.push_back(
      {file_of(R"({"x":3})"), "tensor 'x' must be an object of dtype, shape and data_offsets, but is the number 3"});
  all.push_back(
      {file_of(R"({"x":["F32"]})"), "tensor 'x' must be an object of dtype, shape and data_offsets, but is an array"});
  all.push_back({file_of(R"({"x":{}})"), "tensor 'x' has no dtype"});
  all.push_back({file_of(R"({"x":{"dtype":"U8","data_offsets":[0,0]}})"), "tensor 'x' has no shape"});
  all.push_back({file_of(R"({"x":{"dtype":"U8","shape":[0]}})"), "tensor 'x' has no data_offsets"});
  all.push_back({file_of(R"({"x":{"dtype":"U8","strides":[1]}})"),
                 "tensor 'x' has the unknown field 'strides'; only dtype, shape and data_offsets are known"});
  all.push_back({one("5", "[8]", "[0,32]"), "tensor 'x': dtype must be a text, but is the number 5"});
  all.push_back({one("\"F32\"", "8", "[0,32]"),
                 "tensor 'x': shape must be an array of integers from 0 on, but holds the number 8"});
  all.push_back({one("\"F32\"", "[-8]", "[0,32]"),
                 "tensor 'x': shape must be an array of integers from 0 on, but holds the negative number -8"});
  all.push_back({one("\"F32\"", "[8.0]", "[0,32]"),
                 "tensor 'x': shape must be an array of integers from 0 on, but holds the number 8.0"});
  all.push_back({one("\"F32\"", "[\"8\"]", "[0,32]"),
                 "tensor 'x': shape must be an array of integers from 0 on, but holds the text '8'"});
  all.push_back({one("\"F32\"", "[[8]]", "[0,32]"),
                 "tensor 'x': shape must be an array of integers from 0 on, but holds an array"});
  all.push_back(
      {one("\"F32\"", "[true]", "[0,32]"), "tensor 'x': shape must be an array of integers from 0 on, but holds true"});
  all.push_back({one("\"F32\"", "[8]", "[-1,32]"),
                 "tensor 'x': data_offsets must be two integers from 0 on, but hold the negative number -1"});
  all.push_back({one("\"F32\"", "[8]", "[0,32.0]"),
                 "tensor 'x': data_offsets must be two integers from 0 on, but hold the number 32.0"});
  all.push_back({one("\"F32\"", "[8]", "[0,\"32\"]"),
                 "tensor 'x': data_offsets must be two integers from 0 on, but hold the text '32'"});
  all.push_back({one("\"F32\"", "[8]", "{\"begin\":0}"),
                 "tensor 'x': data_offsets must be two integers from 0 on, but hold an object"});
  all.push_back({one("\"F32\"", "[8]", "[0,1e400]"), "the header is not a JSON object: it goes wrong at its byte 55"});
  all.push_back({one("\"F32\"", "[8]", "[0,18446744073709551616]"),
                 "tensor 'x': data_offsets must be two integers from 0 on, but hold the number 18446744073709551616"});
  all.push_back({one("\"F32\"", "[8]", "[0]"), "tensor 'x' has 1 data_offsets instead of two"});
  all.push_back({one("\"F32\"", "[8]", "[0,32,32]"), "tensor 'x' has more than two data_offsets"});
  // Sizes.
  all.push_back({one("\"F32\"", "[9223372036854775808]", "[0,32]"),
                 "tensor 'x' has a side of 9223372036854775808, more than any tensor can have"});
  all.push_back({one("\"F32\"", "[4294967296,4294967296]", "[0,32]"),
                 "tensor 'x' of shape [4294967296, 4294967296] has more values than can be counted"});
  // 2^62 + 2 values of four bytes: the product of the sides fits, that with the bytes of a value would wrap to 8.
  all.push_back({one("\"F32\"", "[2,2305843009213693953]", "[0,8]"),
                 "tensor 'x' of shape [2, 2305843009213693953] has more values than can be counted"});
  all.push_back({one("\"U8\"", "[0,9223372036854775807,2]", "[0,0]"),
                 "tensor 'x' of shape [0, 9223372036854775807, 2] has more values than can be counted"});
  std::string sides = "1";
  for (int side = 0; side < 64; ++side) sides += ",1";
  all.push_back({one("\"F32\"", "[" + sides + "]", "[0,4]"), "tensor 'x' has more than 64 dimensions"});
  all.push_back({one("\"F32\"", "[7]", "[0,32]"),
                 "tensor 'x' of dtype F32 and shape [7] needs 28 bytes, but its data_offsets [0, 32] hold 32"});
  all.push_back({one("\"F32\"", "[]", "[0,32]"),
                 "tensor 'x' of dtype F32 and shape [] needs 4 bytes, but its data_offsets [0, 32] hold 32"});
  all.push_back({one("\"F32\"", "[8]", "[32,0]"), "tensor 'x' has data_offsets [32, 0], which end before they begin"});
  // Ranges.
  all.push_back({two("[0,4]", "[3,7]", 7),
                 "tensor 'b' begins at byte 3 of the data, but the one before ends at 4: they overlap"});
  all.push_back({two("[0,4]", "[0,4]", 4),
                 "tensor 'b' begins at byte 0 of the data, but the one before ends at 4: they overlap"});
  all.push_back({two("[0,4]", "[5,9]", 9),
                 "tensor 'b' begins at byte 5 of the data, but the one before ends at 4: there is a hole"});
  all.push_back({two("[1,5]", "[5,9]", 9),
                 "tensor 'a' begins at byte 1 of the data, but the one before ends at 0: there is a hole"});
  all.push_back(
      {two("[0,4]", "[4,8]", 9), "the tensors fill 8 bytes of data, but the file holds 9: there are bytes too many"});
  all.push_back({two("[0,4]", "[4,8]", 7), "the tensors fill 8 bytes of data, but the file holds 7: it is cut short"});
  all.push_back({file_of("{}", 1), "the tensors fill 0 bytes of data, but the file holds 1: there are bytes too many"});
  // Names that would fill or steer a terminal.
  all.push_back({file_of("{\"" + too_long + "\":1}"), "tensor '" + std::string(100, 'n') +
                                                          "…' must be an object of dtype, shape and data_offsets, "
                                                          "but is the number 1"});
  all.push_back({file_of(R"({"\u001b[2J":1})"),
                 "tensor '?[2J' must be an object of dtype, shape and data_offsets, but is the number 1"});
  return all;
}

TEST(SafetensorsCorruption, EachIsRefusedWithItsOwnMessage) {
  const TemporaryFolder folder;
  std::set<std::string> messages;
  for (const Corruption& corruption : corruptions()) {
    write_file_at_once(folder / "a", corruption.bytes);
    const std::string expected = (folder / "a").string() + ": " + corruption.message + kDamaged;
    EXPECT_EQ(message_of<FileError>([&] { read_safetensors(folder / "a"); }), expected) << corruption.bytes;
    EXPECT_EQ(message_of<FileError>([&] { read_safetensors_metadata(folder / "a"); }), expected) << corruption.bytes;
    messages.insert(corruption.message);
  }
  EXPECT_GT(messages.size(), 50U);
}

TEST(SafetensorsCorruption, DtypesThatCannotBeHeldAreNamed) {
  const TemporaryFolder folder;
  const std::string remedy = "; convert it to one of BOOL U8 I8 I16 I32 I64 F16 BF16 F32 F64";
  const auto message = [&](const std::string& dtype) {
    write_file_at_once(folder / "a", one("\"" + dtype + "\"", "[8]", "[0,32]"));
    return message_of<FileError>([&] { read_safetensors(folder / "a"); }).substr((folder / "a").string().size());
  };
  EXPECT_EQ(message("U32"), ": tensor 'x' has dtype 'U32', which cannot be held here" + remedy);
  EXPECT_EQ(message("F8_E5M2"), ": tensor 'x' has dtype 'F8_E5M2', which cannot be held here" + remedy);
  EXPECT_EQ(message("f32"), ": tensor 'x' has dtype 'f32', which is not one of the format" + remedy);
  EXPECT_EQ(message(""), ": tensor 'x' has dtype '', which is not one of the format" + remedy);
}

TEST(SafetensorsCorruption, ABoolThatIsNeitherTrueNorFalseIsRefused) {
  const TemporaryFolder folder;
  const std::string header = R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
  write_file_at_once(folder / "a", with_length(header.size(), header + "\1\2"));
  EXPECT_EQ(message_of<FileError>([&] { read_safetensors(folder / "a"); }),
            (folder / "a").string() +
                ": tensor 'x' is BOOL but holds a byte other than 0 and 1 at its place 1; the file is damaged, copy or "
                "write it anew");
}

// Deep nesting must neither exhaust the stack nor the memory.
TEST(SafetensorsCorruption, AMillionBracketsAreRefused) {
  const TemporaryFolder folder;
  write_file_at_once(folder / "a", file_of("{\"x\":" + std::string(1'000'000, '[')));
  EXPECT_THROW(read_safetensors(folder / "a"), FileError);
  write_file_at_once(folder / "a", file_of("{\"x\":{\"shape\":" + std::string(1'000'000, '[')));
  EXPECT_THROW(read_safetensors(folder / "a"), FileError);
}

TensorFile small_file() {
  TensorFile file;
  file.tensors["a"] = at::arange(6, at::kFloat).view({2, 3});
  file.tensors["mask"] = at::tensor({1, 0, 1}, at::kByte).to(at::kBool);
  file.tensors["none"] = at::empty({0, 2}, at::kLong);
  file.metadata = {{"step", "12"}};
  return file;
}

TEST(SafetensorsCorruption, AFileCutAnywhereIsRefused) {
  const TemporaryFolder folder;
  write_safetensors(folder / "whole", small_file());
  const std::string whole = read_file(folder / "whole");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file_at_once(folder / "a", whole.substr(0, size));
    EXPECT_THROW(read_safetensors(folder / "a"), FileError) << size;
  }
}

// Whatever one changed byte does: a clean refusal, or a file that is valid and says something else.
TEST(SafetensorsCorruption, AnyChangedByteOfTheHeaderIsRefusedOrStillValid) {
  const TemporaryFolder folder;
  write_safetensors(folder / "whole", small_file());
  const std::string whole = read_file(folder / "whole");
  const auto header_end = parse_safetensors_header("whole", std::as_bytes(std::span(whole))).data_begin;
  int refused = 0;
  int valid = 0;
  for (std::size_t at = 0; at < header_end; ++at) {
    std::vector<char> values = {'\0', '"', '{', '}', ']', ',', '9', '-', '\\', '\x80', '\xFF'};
    for (int bit = 0; bit < 8; ++bit) values.push_back(static_cast<char>(whole[at] ^ (1 << bit)));
    for (const char value : values) {
      std::string bytes = whole;
      bytes[at] = value;
      try {
        const auto header = parse_safetensors_header("changed", std::as_bytes(std::span(bytes)));
        EXPECT_EQ(header.data_begin, header_end);
        ++valid;
      } catch (const FileError& error) {
        EXPECT_EQ(std::string(error.what()).rfind("changed: ", 0), 0U);
        ++refused;
        continue;
      }
      // Tensors of the right size, or a clean refusal of values.
      write_file_at_once(folder / "a", bytes);
      try {
        const TensorFile read = read_safetensors(folder / "a");
        std::size_t total = 0;
        for (const auto& [name, tensor] : read.tensors) total += static_cast<std::size_t>(tensor.nbytes());
        EXPECT_EQ(total, whole.size() - header_end);
      } catch (const FileError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(valid, 100);
}

TEST(FirstInvalidUtf8, FindsWhatTheStandardForbids) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF"),
            std::nullopt);
  // A lone continuation, an overlong slash, cut short, a wrong continuation.
  for (const char* text : {"ab\x80", "ab\xC0\xAF", "ab\xC3", "ab\xE2\x82", "ab\xE2\x28\xA1", "ab\xC3("}) {
    EXPECT_EQ(first_invalid_utf8(text), 2U) << text;
  }
  // Overlong with three and four bytes, half a surrogate pair, beyond U+10FFFF, never a lead.
  for (const char* text :
       {"\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"}) {
    EXPECT_EQ(first_invalid_utf8(text), 0U) << text;
  }
}

TEST(SafetensorsValueBytes, KnowsTheHeldDtypesOnly) {
  EXPECT_EQ(safetensors_value_bytes("BOOL"), 1U);
  EXPECT_EQ(safetensors_value_bytes("BF16"), 2U);
  EXPECT_EQ(safetensors_value_bytes("F64"), 8U);
  EXPECT_EQ(safetensors_value_bytes("C64"), std::nullopt);
}

}  // namespace
}  // namespace routing::safetensors_corruption_test
