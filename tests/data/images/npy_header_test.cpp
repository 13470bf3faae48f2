#include "routing/data/images/npy_header.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

namespace routing::npy_header_test {
namespace {

using Shape = std::vector<std::int64_t>;

NpyHeader parse(std::string_view line) {
  return parse_npy_header(line, "a.npz: data.npy");
}

std::string message(std::string_view line) {
  return message_of<FileError>([&] { parse(line); });
}

std::string expected(const std::string& found, int letter, const std::string& what) {
  return "a.npz: data.npy: its NumPy header has \"" + found + "\" at letter " + std::to_string(letter) + ", but " +
         what + " was expected; save it again with numpy.savez";
}

TEST(NpyHeader, LineOfNumpyIsUnderstood) {
  const NpyHeader header = parse("{'descr': '|u1', 'fortran_order': False, 'shape': (600, 12288), }        \n");
  EXPECT_EQ(header.descr, "|u1");
  EXPECT_FALSE(header.fortran_order);
  EXPECT_EQ(header.shape, (Shape{600, 12288}));
}

TEST(NpyHeader, OrderQuotesSpacesAndPythonTwoDoNotMatter) {
  const NpyHeader header = parse("{\"shape\":(3L,4L,),\"fortran_order\" : True,\"descr\":\"<f4\"}");
  EXPECT_EQ(header.descr, "<f4");
  EXPECT_TRUE(header.fortran_order);
  EXPECT_EQ(header.shape, (Shape{3, 4}));
  EXPECT_EQ(parse("{'descr': '|u1', 'fortran_order': False, 'shape': (), }").shape, Shape{});
  EXPECT_EQ(parse("{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }").shape, Shape{7});
}

TEST(NpyHeader, EverythingElseIsRefusedWithItsPlace) {
  EXPECT_EQ(message(""), expected("", 0, "{"));
  EXPECT_EQ(message("__import__('os')"), expected("__import__('os')", 0, "{"));
  EXPECT_EQ(message("{'descr': __import__('os')"), expected("__import__('os')", 10, "a word in quotes"));
  EXPECT_EQ(message("{'descr': [('a', '|u1')]"), expected("[('a', '|u1')]", 10, "a word in quotes"));
  EXPECT_EQ(message("{'descr': '|u1"), expected("", 14, "a closing quote"));
  EXPECT_EQ(message("{'descr': '|u1' 'shape'"), expected("'shape'", 16, "}"));
  EXPECT_EQ(message("{'descr' '|u1'"), expected("'|u1'", 9, ":"));
  EXPECT_EQ(message("{'fortran_order': 0"), expected("0", 18, "True or False"));
  EXPECT_EQ(message("{'shape': 600"), expected("600", 10, "("));
  EXPECT_EQ(message("{'shape': (600 12288)"), expected("12288)", 15, ")"));
  EXPECT_EQ(message("{'shape': (-1,)"), expected("-1,)", 11, "a whole number below 2^63"));
  EXPECT_EQ(message("{'shape': (9223372036854775808,)"),
            expected("9223372036854775808,", 11, "a whole number below 2^63"));
  EXPECT_EQ(message("{'shape': (,)"), expected(",)", 11, "a whole number below 2^63"));
  EXPECT_EQ(message("{'size': 1"), expected("'size': 1", 1, "one of the keys descr, fortran_order and shape"));
  EXPECT_EQ(message("{'descr': 'a', 'descr': 'b'"), expected("'descr': 'b'", 15, "each key once"));
  EXPECT_EQ(message("{'descr': '|u1', 'shape': ()}"),
            expected("", 29, "all of the keys descr, fortran_order and shape"));
  EXPECT_EQ(message("{'descr': '|u1', 'fortran_order': False, 'shape': ()} + \x01"),
            expected("+ ?", 54, "nothing after the closing brace"));
}

TEST(NpyHeader, ShapesAreWrittenAsNumpyDoes) {
  EXPECT_EQ(shape_text({}), "()");
  EXPECT_EQ(shape_text({7}), "(7,)");
  EXPECT_EQ(shape_text({600, 12288}), "(600, 12288)");
}

}  // namespace
}  // namespace routing::npy_header_test
