#include "routing/config/text/toml_keys.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::toml_keys_test {
namespace {

std::string dotted(std::size_t parts) {
  std::string key = "a";
  for (std::size_t part = 1; part < parts; ++part) key += ".a";
  return key;
}

TEST(LineOfDeepKey, PartsAreCountedInHeadersKeysAndInlineTables) {
  for (const std::string before : {"", "[", "[[", "x = {", "x = {b = 1, ", "x = [1.5, {"}) {
    EXPECT_EQ(line_of_deep_key("\n" + before + dotted(4), 4), std::nullopt) << before;
    EXPECT_EQ(line_of_deep_key("\n" + before + dotted(5), 4), 2U) << before;
  }
  EXPECT_EQ(line_of_deep_key("a . a . a", 2), 1U);
  EXPECT_EQ(line_of_deep_key(R"("=".'[.'."\".".a)", 3), 1U) << "parts in quotes are parts";
  EXPECT_EQ(line_of_deep_key(R"("=".'[.'."\".".a)", 4), std::nullopt);
}

TEST(LineOfDeepKey, DotsOfTextsCommentsAndNumbersDoNotCount) {
  for (const std::string text :
       {"a = \"1.2.3.4\"", "a = '1.2.3.4'", "# 1.2.3.4", "a = 1.5\nb = 2.5\nc = 3.5", "a = [1.5, 2.5, 3.5]",
        "a = \"\"\"\n1.2.3.4\n\"\"\"", "a = '''\n1.2.3.4\n'''", "a = \"\\\"1.2.3.4\""}) {
    EXPECT_EQ(line_of_deep_key(text, 2), std::nullopt) << text;
  }
}

// A text that seemed to go on would hide what follows it.
TEST(LineOfDeepKey, WhatFollowsATextIsSeen) {
  const std::string key = dotted(5);
  for (const std::string text :
       {"x = \"\"\"a\nb\"\"\"", "x = '''a\nb'''", "x = \"\"\"a\nb\"\"\"\"", "x = \"\"\"a\nb\"\"\"\"\"",
        "x = \"\"\"a\n\\\"\"\"\"", "x = '''a\nb\\'''", "x = \"\\\\\"\ny = 'b\\'", "x = \"\"\ny = ''"}) {
    EXPECT_EQ(line_of_deep_key(text + ", " + key, 4), 2U) << text;
  }
  EXPECT_EQ(line_of_deep_key("x = \"open\n" + key, 4), 2U) << "a line end breaks a text";
}

TEST(LineOfStrayLetter, LettersBelongInTextsAndComments) {
  for (const std::string text :
       {"", "a = 1 # caf\xc3\xa9",
        "\xef\xbb\xbf"
        "a = 1",
        "a = \"\xc3\xa9\\n\xc3\xa9\"", "\"\xc3\xa9\" = '\\\xc3\xa9'", "a = \"\"\"\n\xc3\xa9 \\\n  e\xc3\xa9\"\"\"",
        "a = \"\\\\ \"", "a = '''\n\\ \xc3\xa9'''"}) {
    EXPECT_EQ(line_of_stray_letter(text), std::nullopt) << text;
  }
  for (const std::string text :
       {"\n\xc3\xa9 = 1", "\n a = 1 \xd2\x88", "a = '\xc3\xa9'\n\xc2\xa0", "[x]\n[\xe3\x81\x82]",
        "a = \"\"\"\n\\\xc3\xa9\"\"\"", "a = \"\"\" \\ \t\n \xc3\xa9\"\"\"", "a = \"open\n\xc3\xa9",
        "# \xc3\xa9\n\xef\xbb\xbf"}) {
    EXPECT_EQ(line_of_stray_letter(text), 2U) << text;
  }
}

}  // namespace
}  // namespace routing::toml_keys_test
