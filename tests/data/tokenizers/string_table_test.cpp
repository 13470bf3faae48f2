#include "routing/data/tokenizers/string_table.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::string_table_test {
namespace {

TEST(StringTableTest, StringsAreNumberedAsTheyComeAndFoundAgain) {
  StringTable table;
  EXPECT_EQ(table.find("a"), StringTable::kAbsent);
  EXPECT_EQ(table.size(), 0);
  EXPECT_EQ(table.add("b"), 0);
  EXPECT_EQ(table.add("a"), 1);
  EXPECT_EQ(table.add("b"), 0);
  EXPECT_EQ(table.add(""), 2);
  EXPECT_EQ(table.add(std::string("\0", 1)), 3);
  EXPECT_EQ(table.size(), 4);
  EXPECT_EQ(table.find("a"), 1);
  EXPECT_EQ(table.find(""), 2);
  EXPECT_EQ(table.find("ab"), StringTable::kAbsent);
  EXPECT_EQ(table[0], "b");
  EXPECT_EQ(table[1], "a");
  EXPECT_EQ(table[2], "");
  EXPECT_EQ(table[3], std::string("\0", 1));
}

TEST(StringTableTest, GrowingLosesNothing) {
  StringTable table;
  for (int number = 0; number < 100000; ++number) ASSERT_EQ(table.add(std::to_string(number)), number);
  for (int number = 0; number < 100000; ++number) {
    ASSERT_EQ(table.find(std::to_string(number)), number);
    ASSERT_EQ(table[number], std::to_string(number));
    ASSERT_EQ(table.find("x" + std::to_string(number)), StringTable::kAbsent);
  }
  const StringTable copy = table;
  EXPECT_EQ(copy.find("99999"), 99999);
}

}  // namespace
}  // namespace routing::string_table_test
