#include "routing/interchange/bundle/snappy.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::snappy_test {
namespace {

std::string unpacked(const std::string& packed) {
  return snappy_unpacked(std::as_bytes(std::span(packed)), "file");
}

// Put together by hand from the description of the format.
TEST(Snappy, HandWorkedPieces) {
  EXPECT_EQ(unpacked(std::string("\x00", 1)), "");
  EXPECT_EQ(unpacked("\x03\x08"
                     "abc"),
            "abc");
  // "abc", then five bytes from three before, which overlap what they make: 01 with length 5 - 4, offset 3.
  EXPECT_EQ(unpacked("\x08\x08"
                     "abc\x05\x03"),
            "abcabcab");
  // The same by an offset of 16 and of 32 bits: length 5 - 1 in the upper bits.
  EXPECT_EQ(unpacked(std::string("\x08\x08"
                                 "abc\x12\x03\x00",
                                 8)),
            "abcabcab");
  EXPECT_EQ(unpacked(std::string("\x08\x08"
                                 "abc\x13\x03\x00\x00\x00",
                                 10)),
            "abcabcab");
  // A run, and a literal of 100 bytes whose length stands in a byte of its own.
  EXPECT_EQ(unpacked(std::string("\x0b\x00z\x19\x01", 5)), "zzzzzzzzzzz");
  EXPECT_EQ(unpacked("\x64\xf0\x63" + std::string(100, 'q')), std::string(100, 'q'));
}

TEST(Snappy, WhatDoesNotFitIsRefused) {
  EXPECT_NE(message_of<FileError>([] {
              unpacked(
                  "\x04\x08"
                  "abc");
            }).find("makes 3 bytes, but 4 were expected"),
            std::string::npos);
  EXPECT_NE(message_of<FileError>([] {
              unpacked(
                  "\x02\x08"
                  "abc");
            }).find("more than its 2 bytes"),
            std::string::npos);
  EXPECT_NE(message_of<FileError>([] {
              unpacked(
                  "\x08\x08"
                  "abc\x05\x04");
            }).find("what stood 4 bytes before, but has made 3"),
            std::string::npos);
  EXPECT_THROW(unpacked(std::string("\x08\x08"
                                    "abc\x05\x00",
                                    7)),
               FileError);
  EXPECT_THROW(unpacked("\x08\x08"
                        "ab"),
               FileError);
  EXPECT_NE(message_of<FileError>([] { unpacked("\xff\xff\xff\xff\x0f"); }).find("4294967295 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace routing::snappy_test
