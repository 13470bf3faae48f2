#include "shell/text_table.h"

#include "shell/output.h"

#include <gtest/gtest.h>

namespace routing::text_table_test {
namespace {

const std::vector<TableColumn> kColumns{
    {.title = "name", .shrinks = true}, {.title = "n", .right = true}, {.title = "when"}};

TEST(TextTable, ColumnsAreAsWideAsWhatStandsInThem) {
  EXPECT_EQ(text_table(kColumns, {{"a", "1", "now"}, {"länger", "100", "x"}}, 0),
            "name      n  when\n"
            "a         1  now\n"
            "länger  100  x\n");
}

TEST(TextTable, ALastCellOfAShortRowRunsOverTheOthers) {
  EXPECT_EQ(text_table(kColumns, {{"a", "is broken for some reason"}, {"b", "2", "now"}}, 20),
            "name  n  when\n"
            "a     is broken for…\n"
            "b     2  now\n");
}

TEST(TextTable, NarrowTerminalsCutNamesAndThenColumns) {
  const std::vector<std::vector<std::string>> rows{{"a-name-of-twenty-let", "7", "today"}};
  EXPECT_EQ(text_table(kColumns, rows, 25), "name             n  when\na-name-of-twen…  7  today\n");
  EXPECT_EQ(text_table(kColumns, rows, 16), "name          n\na-name-of-t…  7\n");
}

TEST(TextTable, LettersThatATerminalWouldObeyAreGone) {
  EXPECT_EQ(text_table({{.title = "a"}}, {{"x\033[2J\ny"}}, 0), "a\nx?[2J?y\n");
}

TEST(TextTable, APipeHasNoWidth) {
  if (output_width() > 0) GTEST_SKIP() << "standard output is a terminal here";
  EXPECT_EQ(output_width(), 0U);
}

TEST(HarmlessLines, KeepLettersAndLineEndsAndNothingThatATerminalObeys) {
  EXPECT_EQ(harmless_lines("a\x1b[31mb\tc\x7f\nd"), "a?[31mb?c?\nd");
  EXPECT_EQ(harmless_lines("caf\xc3\xa9 \xc2\xa0 \xc2\x9b"
                           "5 \xc2"),
            "caf\xc3\xa9 \xc2\xa0 ?5 \xc2");
}

}  // namespace
}  // namespace routing::text_table_test
