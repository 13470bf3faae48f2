#include "routing/interchange/bundle/sorted_table.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/interchange/bundle/wire_format.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::sorted_table_test {
namespace {

TableEntries read(const std::string& file) {
  return read_sorted_table(std::as_bytes(std::span(file)), "table");
}

std::string trailer_of(const std::string& block, char packing = '\0') {
  const std::string covered = block + packing;
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(covered)));
  std::string trailer(1, packing);
  append_fixed32(trailer, ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U);
  return trailer;
}

constexpr std::string_view kMagic("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);

// Written down by hand from the description of the format: "ac" shares one byte with "ab".
const std::string kEntries(
    "\x00\x00\x01h\x00\x02\x01"
    "abx\x01\x01\x01"
    "cy\x00\x00\x00\x00\x01\x00\x00\x00",
    4 + 6 + 5 + 8);
const std::string kNothing("\x00\x00\x00\x00\x01\x00\x00\x00", 8);

std::string hand_made(const std::string& entries, char packing = '\0') {
  std::string file = entries + trailer_of(entries, packing);
  const std::size_t meta = file.size();
  file += kNothing + trailer_of(kNothing);
  const std::size_t index_place = file.size();
  std::string index(
      "\x00\x02\x02"
      "ac",
      5);
  index += '\0';
  index += static_cast<char>(entries.size());
  index += std::string("\x00\x00\x00\x00\x01\x00\x00\x00", 8);
  file += index + trailer_of(index);
  std::string footer;
  for (const std::size_t number : {meta, kNothing.size(), index_place, index.size()}) append_varint(footer, number);
  footer.resize(40, '\0');
  return file + footer + std::string(kMagic);
}

TEST(SortedTable, HandWorkedBytesAreReadAndWritten) {
  const TableEntries expected{{"", "h"}, {"ab", "x"}, {"ac", "y"}};
  EXPECT_EQ(read(hand_made(kEntries)), expected);
  EXPECT_EQ(sorted_table(expected), hand_made(kEntries));
}

TEST(SortedTable, KnownChecksumIsMasked) {
  // CRC-32C of 32 zero bytes is 8a9136aa (RFC 3720); rotated right by 15 bits that is 6d551522, plus a282ead8.
  const std::string zeros(32, '\0');
  EXPECT_EQ(masked_crc32c(std::as_bytes(std::span(zeros))), 0x0fd7fffaU);
}

TEST(SortedTable, ManyEntriesInManyBlocksComeBack) {
  TableEntries entries;
  for (int number = 0; number < 5000; ++number) {
    std::string key = std::to_string(number);
    key.insert(0, 6 - key.size(), '0');
    entries.emplace_back("layer/" + key,
                         std::string(static_cast<std::size_t>(number % 400), static_cast<char>(number)));
  }
  const std::string file = sorted_table(entries);
  EXPECT_GT(file.size(), 3 * 262'144U);
  EXPECT_EQ(read(file), entries);
  EXPECT_TRUE(read(sorted_table({})).empty());
}

TEST(SortedTable, UnsortedKeysAreRefusedBothWays) {
  EXPECT_THROW(sorted_table({{"b", ""}, {"a", ""}}), InputError);
  EXPECT_THROW(sorted_table({{"a", ""}, {"a", ""}}), InputError);
  std::string twice = kEntries;
  twice[13] = 'b';  // "ab" again in the place of "ac"
  EXPECT_NE(message_of<FileError>([&] { read(hand_made(twice)); }).find("'ab' does not come after 'ab'"),
            std::string::npos);
}

TEST(SortedTable, BlocksPackedBySnappyAreReadAndOtherPackingsRefused) {
  // As they are: a literal of 23 bytes.
  const std::string packed = std::string("\x17\x58", 2) + kEntries;
  EXPECT_EQ(read(hand_made(packed, '\1')), (TableEntries{{"", "h"}, {"ab", "x"}, {"ac", "y"}}));
  EXPECT_NE(message_of<FileError>([] { read(hand_made(kEntries, '\7')); }).find("packed in the way 7"),
            std::string::npos);
}

// A key of a megabyte and entries of four bytes that share it would take a gigabyte for each thousand of them.
TEST(SortedTable, KeysThatGrowByWhatTheyShareAreRefused) {
  const std::string key(4096, 'k');
  EXPECT_EQ(read(sorted_table({{key, "value"}})), (TableEntries{{key, "value"}}));
  EXPECT_NE(message_of<FileError>([&] {
              read(sorted_table({{key + "k", "value"}}));
            }).find("0 and 4097 bytes"),
            std::string::npos);
  EXPECT_NE(message_of<FileError>([&] {
              read(sorted_table({{key, "value"}, {key + "k", "value"}, {"z", "value"}}));
            }).find("4096 and 1"),
            std::string::npos);
}

TEST(SortedTable, BlocksWithoutEntriesAreRefused) {
  EXPECT_NE(message_of<FileError>([&] { read(hand_made(kNothing)); }).find("'ac' has no entries"), std::string::npos);
}

TEST(SortedTable, EveryChangedBitAndEveryCutIsNoticed) {
  const std::string file = hand_made(kEntries);
  const TableEntries expected = read(file);
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string changed = file;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    try {
      // The footer has no checksum: its padding may change unseen.
      EXPECT_EQ(read(changed), expected) << "bit " << bit;
    } catch (const FileError&) {
      ++refused;
    }
  }
  EXPECT_GE(refused, static_cast<int>(8 * (file.size() - 40)));
  for (std::size_t size = 0; size < file.size(); ++size) EXPECT_THROW(read(file.substr(0, size)), FileError);
}

}  // namespace
}  // namespace routing::sorted_table_test
