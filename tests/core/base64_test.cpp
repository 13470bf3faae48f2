#include "routing/core/base64.h"

#include <gtest/gtest.h>

namespace routing::base64_test {
namespace {

TEST(Base64, WritesTheExamplesOfItsStandard) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foob"), "Zm9vYg==");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, ReadsBackWhatItWroteOfAnyBytes) {
  std::string bytes;
  for (int i = 0; i < 700; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes) << i;
    bytes += static_cast<char>((i * 151 + i / 7) & 0xff);
  }
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zm9v!mFy", "Zm 9", "Zm9v\n",
                           "=Zg=", "Zg==Zg==", "Zh==", "Zm9=", "_-8="}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
  EXPECT_EQ(from_base64("+/8="), "\xfb\xff");
}

}  // namespace
}  // namespace routing::base64_test
