#include "routing/core/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace routing {
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

}  // namespace
}  // namespace routing
