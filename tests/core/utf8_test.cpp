#include "routing/core/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::utf8_test {
namespace {

TEST(Utf8, TextsOfEveryLengthOfCharacterAreValid) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8(std::string("\0", 1)), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("plain text that is longer than eight letters\n"), std::nullopt);
  // The first and the last character of each length, and those around the surrogates.
  EXPECT_EQ(first_invalid_utf8("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), std::nullopt);
}

TEST(Utf8, WhatIsNoCharacterIsFoundAtItsPlaceWhateverStandsBefore) {
  const std::string faults[] = {
      "\x80",              // goes on without a start
      "\xc0\x80",          // longer than needed: NUL
      "\xc1\xbf",          // longer than needed
      "\xe0\x9f\xbf",      // longer than needed
      "\xf0\x8f\xbf\xbf",  // longer than needed
      "\xed\xa0\x80",      // a surrogate
      "\xf4\x90\x80\x80",  // beyond U+10FFFF
      "\xf5\x80\x80\x80",  // beyond U+10FFFF
      "\xff",              // never
      "\xc3",              // cut off
      "\xe2\x82",          // cut off
      "\xf0\x9f\x98",      // cut off
      "\xc3(",             // does not go on
  };
  for (const std::string& fault : faults) {
    for (std::size_t before = 0; before < 20; ++before) {
      EXPECT_EQ(first_invalid_utf8(std::string(before, 'a') + fault), before) << before;
      EXPECT_EQ(first_invalid_utf8(std::string(before, 'a') + "\xc3\xa9" + fault + "more letters"), before + 2);
    }
  }
}

TEST(Utf8, TailIsWhatTheNextBytesCanMakeACharacter) {
  EXPECT_EQ(incomplete_utf8_tail(""), 0U);
  EXPECT_EQ(incomplete_utf8_tail("abc"), 0U);
  EXPECT_EQ(incomplete_utf8_tail("\xc3\xa9"), 0U);
  EXPECT_EQ(incomplete_utf8_tail("\xc3\xa9\xc3"), 1U);
  EXPECT_EQ(incomplete_utf8_tail("a\xe2\x82"), 2U);
  EXPECT_EQ(incomplete_utf8_tail("\x80\x80\xf0\x9f\x98"), 3U);
  EXPECT_EQ(incomplete_utf8_tail("\xf0\x9f\x98\x80"), 0U);
  EXPECT_EQ(incomplete_utf8_tail("\x80\x80\x80"), 0U);
  EXPECT_EQ(incomplete_utf8_tail("\xc3("), 0U);
}

// Every end of up to three bytes against all that can follow it.
TEST(Utf8, TailIsIncompleteExactlyIfSomeBytesCompleteIt) {
  // The bytes at which the rules change, as both ends of every range.
  const unsigned char edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
                                 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff};
  const auto can_be_completed = [](const std::string& start) {
    std::vector<std::string> texts{start};
    for (int more = 0; more < 3; ++more) {
      std::vector<std::string> longer;
      for (const std::string& text : texts) {
        for (const char edge : {'\x80', '\x8f', '\x90', '\x9f', '\xa0', '\xbf'}) {
          longer.push_back(text + edge);
          if (!first_invalid_utf8(longer.back())) return true;
        }
      }
      texts = longer;
    }
    return false;
  };
  for (const unsigned char first : edges) {
    for (const unsigned char second : edges) {
      for (const unsigned char third : edges) {
        const std::string text{static_cast<char>(first), static_cast<char>(second), static_cast<char>(third)};
        std::size_t expected = 0;
        for (std::size_t length = 1; length <= 3; ++length) {
          const std::string tail = text.substr(3 - length);
          if (first_invalid_utf8(tail) == 0U && can_be_completed(tail)) expected = length;
        }
        ASSERT_EQ(incomplete_utf8_tail(text), expected)
            << unsigned{first} << " " << unsigned{second} << " " << unsigned{third};
      }
    }
  }
}

}  // namespace
}  // namespace routing::utf8_test
