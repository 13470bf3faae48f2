#include "lab/heads/spread_sequences.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace routing::spread_sequences_test {
namespace {

// 0, 1, 2 …: a token tells its place.
class SpreadSequences : public testing::Test {
 protected:
  SpreadSequences() { std::iota(ids_.begin(), ids_.end(), 0); }
  std::vector<std::int64_t> starts(const SequencesToTake& which) {
    const at::Tensor tokens = spread_sequences(TokenView(std::span<const std::int32_t>(ids_)), which);
    std::vector<std::int64_t> result;
    for (std::int64_t row = 0; row < tokens.size(0); ++row) {
      result.push_back(tokens[row][0].item<std::int64_t>());
      for (std::int64_t i = 0; i < which.length; ++i) {
        EXPECT_EQ(tokens[row][i].item<std::int64_t>(), result.back() + i);
      }
    }
    return result;
  }
  std::vector<std::int32_t> ids_ = std::vector<std::int32_t>(100);
};

TEST_F(SpreadSequences, AreDisjointAndSpreadOverThePart) {
  EXPECT_EQ(starts({.length = 10, .count = 3}), (std::vector<std::int64_t>{0, 30, 60}));
  EXPECT_EQ(starts({.length = 30, .count = 10}), (std::vector<std::int64_t>{0, 30, 60})) << "no more than there are";
  EXPECT_EQ(starts({.length = 100, .count = 1}), (std::vector<std::int64_t>{0}));
}

TEST_F(SpreadSequences, OfImagesBeginWithTheImage) {
  EXPECT_EQ(starts({.length = 5, .record_length = 24, .count = 2}), (std::vector<std::int64_t>{0, 48}));
  EXPECT_EQ(starts({.length = 24, .record_length = 24, .count = 9}), (std::vector<std::int64_t>{0, 24, 48, 72}));
}

TEST_F(SpreadSequences, RefuseWhatIsNotThere) {
  EXPECT_THROW(starts({.length = 101}), ConfigError);
  EXPECT_THROW(starts({.length = 25, .record_length = 24}), ConfigError);
  EXPECT_THROW(starts({.length = 0}), ConfigError);
  EXPECT_THROW(starts({.length = 5, .count = 0}), ConfigError);
}

}  // namespace
}  // namespace routing::spread_sequences_test
