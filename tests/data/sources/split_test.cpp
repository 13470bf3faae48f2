#include "routing/data/sources/split.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::split_test {
namespace {

std::string message_for(const std::string& rule, std::int64_t bytes) {
  try {
    split_corpus(rule, bytes, "some/file");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Split, Enwik8IsSplitAsEverybodySplitsIt) {
  const CorpusSplit expected = {{0, 90'000'000}, {90'000'000, 95'000'000}, {95'000'000, 100'000'000}, 0};
  for (const char* rule :
       {"90%/5%/5%", "90000000/5000000/5000000", "rest/5000000/5000000", "rest/5%/5%", "90.0%/5.0000%/rest"}) {
    EXPECT_EQ(split_corpus(rule, 100'000'000, "enwik8"), expected) << rule;
  }
}

TEST(Split, BordersOfSharesAreRoundedDownAndTestEndsWithTheFile) {
  // 4154399 * 0.9 = 3738959.1 and 4154399 * 0.95 = 3946679.05
  EXPECT_EQ(split_corpus("90%/5%/5%", 4'154'399, "f"),
            (CorpusSplit{{0, 3'738'959}, {3'738'959, 3'946'679}, {3'946'679, 4'154'399}, 0}));
  // 7 * 0.333333 = 2.33, 7 * 0.666666 = 4.67
  EXPECT_EQ(split_corpus("33.3333%/33.3333%/33.3334%", 7, "f"), (CorpusSplit{{0, 2}, {2, 4}, {4, 7}, 0}));
  EXPECT_EQ(split_corpus("90%/5%/5%", 1, "f"), (CorpusSplit{{0, 0}, {0, 0}, {0, 1}, 0}));
}

TEST(Split, BytesNeedNotCoverTheFileAndWhatIsLeftIsCounted) {
  EXPECT_EQ(split_corpus("60/20/10", 100, "f"), (CorpusSplit{{0, 60}, {60, 80}, {80, 90}, 10}));
  EXPECT_EQ(split_corpus("0/0/0", 100, "f"), (CorpusSplit{{0, 0}, {0, 0}, {0, 0}, 100}));
}

TEST(Split, RestIsWhatTheOthersLeaveWhereverItStands) {
  EXPECT_EQ(split_corpus("rest/0/20", 100, "f"), (CorpusSplit{{0, 80}, {80, 80}, {80, 100}, 0}));
  EXPECT_EQ(split_corpus("30/rest/20", 100, "f"), (CorpusSplit{{0, 30}, {30, 80}, {80, 100}, 0}));
  EXPECT_EQ(split_corpus("30/20/rest", 100, "f"), (CorpusSplit{{0, 30}, {30, 50}, {50, 100}, 0}));
  EXPECT_EQ(split_corpus("90%/0/rest", 100, "f"), (CorpusSplit{{0, 90}, {90, 90}, {90, 100}, 0}));
  EXPECT_EQ(split_corpus("rest/40/60", 100, "f"), (CorpusSplit{{0, 0}, {0, 40}, {40, 100}, 0}));
}

// Plain arithmetic on every pair of whole shares and many sizes: parts tile the file and are as large as asked for,
// give or take the byte that rounding moves.
TEST(Split, SharesTileEveryFile) {
  for (std::int64_t train = 0; train <= 100; train += 7) {
    for (std::int64_t valid = 0; train + valid <= 100; valid += 9) {
      const std::string rule =
          std::to_string(train) + "%/" + std::to_string(valid) + "%/" + std::to_string(100 - train - valid) + "%";
      for (std::int64_t bytes : {0, 1, 2, 3, 19, 99, 100, 101, 12'345, 2'000'003}) {
        const CorpusSplit split = split_corpus(rule, bytes, "f");
        EXPECT_EQ(split.train.begin, 0);
        EXPECT_EQ(split.train.end, bytes * train / 100);
        EXPECT_EQ(split.valid.begin, split.train.end);
        EXPECT_EQ(split.valid.end, bytes * (train + valid) / 100);
        EXPECT_EQ(split.test.begin, split.valid.end);
        EXPECT_EQ(split.test.end, bytes);
        EXPECT_EQ(split.unused, 0);
      }
    }
  }
}

TEST(Split, SharesOfHugeFilesDoNotOverflow) {
  const std::int64_t bytes = std::int64_t{1} << 60U;
  EXPECT_EQ(split_corpus("50%/25%/25%", bytes, "f").train.end, bytes / 2);
  EXPECT_EQ(split_corpus("50%/25%/25%", bytes, "f").valid.end, bytes / 4 * 3);
}

TEST(Split, MoreBytesThanTheFileHasAreRefusedWithBothNumbers) {
  EXPECT_EQ(message_for("90/5/6", 100),
            "data.split: the parts of '90/5/6' sum to 101 bytes, but some/file has 100; lower one of them, or write "
            "rest for it");
  EXPECT_EQ(message_for("rest/0/2000000", 100),
            "data.split: the parts of 'rest/0/2000000' sum to 2000000 bytes, but some/file has 100; lower one of them, "
            "or write rest for it");
  EXPECT_EQ(message_for("90/5/5", 100), "");
}

// tests/config/split_text_test.cpp has all of them.
TEST(Split, RulesThatCannotBeReadAreRefused) {
  for (const char* rule : {"", "90%/10%", "50/ten/5", "90%/5%/4%", "90%/20%/rest", "rest/rest/5", "90%/5/rest"}) {
    EXPECT_TRUE(message_for(rule, 100).starts_with("data.split: ")) << rule;
  }
}

TEST(Split, PartsHaveNames) {
  const CorpusSplit split = split_corpus("50/30/20", 100, "f");
  EXPECT_EQ(part_named(split, "train"), (SplitBounds{0, 50}));
  EXPECT_EQ(part_named(split, "valid"), (SplitBounds{50, 80}));
  EXPECT_EQ(part_named(split, "test"), (SplitBounds{80, 100}));
  EXPECT_THROW(part_named(split, "validation"), ConfigError);
}

TEST(Split, NegativeSizeIsRefused) {
  EXPECT_THROW(split_corpus("90%/5%/5%", -1, "f"), InputError);
}

}  // namespace
}  // namespace routing::split_test
