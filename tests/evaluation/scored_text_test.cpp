#include "routing/evaluation/scored_text.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace routing::scored_text_test {
namespace {

class ScoredText : public testing::Test {
 protected:
  DataConfig config(const std::filesystem::path& path) const {
    DataConfig data;
    data.path = path.string();
    data.cache = (folder_ / "cache").string();
    return data;
  }

  // Three words and an end per line; 14 bytes with the space before the end of the line.
  Dataset words() {
    for (const std::string part : {"train", "valid", "test"}) {
      std::ofstream text(folder_ / ("wiki." + part + ".tokens"));
      for (int i = 0; i < 6; ++i) text << " aa bb <unk> \n";
    }
    return Dataset(config(folder_.path()));
  }

  TemporaryFolder folder_;
};

TEST_F(ScoredText, OfAWholePartIsAsCountedWhenItWasMade) {
  const Dataset data = words();
  const DatasetPart& part = data.part("test");
  const ScoredTokens scored = scored_text({.nats = 2.5, .tokens = part.tokens.size()}, data, "test");
  EXPECT_EQ(scored.nats, 2.5);
  EXPECT_EQ(scored.tokens, 6 * 4);
  EXPECT_EQ(scored.words, part.words);
  EXPECT_EQ(scored.bytes, part.bytes);
  EXPECT_EQ(scored.words, 6 * 3);
}

TEST_F(ScoredText, OfABeginningIsWhatItsTokensDecodeTo) {
  const Dataset data = words();
  // A line and two words of the next.
  const ScoredTokens scored = scored_text({.nats = 1.0, .tokens = 6}, data, "test");
  EXPECT_EQ(scored.tokens, 6);
  EXPECT_EQ(scored.words, 5);
  EXPECT_GT(scored.bytes, 14);
  EXPECT_LT(scored.bytes, 28);
}

TEST_F(ScoredText, OfBytesIsNotText) {
  std::ofstream(folder_ / "text") << std::string(1000, 'x');
  const Dataset data(config(folder_ / "text"));
  const ScoredTokens scored = scored_text({.nats = 1.0, .tokens = 10}, data, "train");
  EXPECT_EQ(scored.tokens, 10);
  EXPECT_EQ(scored.words, 0);
  EXPECT_EQ(scored.bytes, 0);
}

}  // namespace
}  // namespace routing::scored_text_test
