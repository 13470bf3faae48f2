#include "train/preset_choice.h"

#include "routing/config/resolve.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::preset_choice_test {
namespace {

std::vector<std::string> names_of(const PresetChoice& choice) {
  std::vector<std::string> names;
  for (const QuickstartSize& size : choice.sizes) names.push_back(size.preset);
  return names;
}

using Names = std::vector<std::string>;

TEST(PresetChoice, FollowsFromTokensAndTheirNumber) {
  EXPECT_EQ(names_of(preset_for({.train_tokens = 1'000'000})), Names{"my-text"});
  EXPECT_EQ(names_of(preset_for({.train_tokens = 4'000'000})), (Names{"my-text", "my-text-medium"}));
  EXPECT_EQ(names_of(preset_for({.tokens = TokenKind::words, .train_tokens = 9'000'000})), Names{"my-words"});
  EXPECT_EQ(names_of(preset_for({.tokens = TokenKind::subwords, .train_tokens = 10})), Names{"my-subwords"});
}

TEST(PresetChoice, SequencesAreAtMostHalfOfTheTextAndWindowsNoLongerThanThem) {
  EXPECT_EQ(longest_sequence(1'000'000), 262'144);
  EXPECT_EQ(longest_sequence(2048), 1024);
  EXPECT_EQ(longest_sequence(2047), 512);
  EXPECT_EQ(longest_sequence(0), 32);
  EXPECT_EQ(preset_for({.train_tokens = 2048}).settings, Names{});
  EXPECT_EQ(preset_for({.train_tokens = 400}).settings, (Names{"train.sequence_length=128", "routing.window=128"}));
  EXPECT_EQ(preset_for({.train_tokens = 1'000'000, .sequence_length = 64}).settings,
            (Names{"train.sequence_length=64", "local.window=64", "routing.window=64"}));
}

TEST(PresetChoice, ImagesGiveTheirSizeAndTwoRowsOfPixels) {
  const PresetChoice choice =
      preset_for({.tokens = TokenKind::subpixels, .train_tokens = 3072, .image_height = 32, .image_width = 32});
  EXPECT_EQ(names_of(choice), Names{"my-images"});
  EXPECT_EQ(choice.settings, (Names{"model.image_height=32", "model.image_width=32", "train.sequence_length=3072",
                                    "local.window=192", "routing.window=192"}));
}

// Whatever is chosen is a whole experiment.
TEST(PresetChoice, IsAlwaysAValidExperiment) {
  for (const OwnData& data : std::vector<OwnData>{
           {.train_tokens = 10},
           {.train_tokens = 300},
           {.train_tokens = 5'000'000},
           {.tokens = TokenKind::words, .train_tokens = 500},
           {.tokens = TokenKind::subwords, .train_tokens = 500},
           {.tokens = TokenKind::subpixels, .train_tokens = 9, .image_height = 1, .image_width = 1},
           {.tokens = TokenKind::subpixels, .train_tokens = 9, .image_height = 8, .image_width = 5},
           {.tokens = TokenKind::subpixels, .train_tokens = 9, .image_height = 64, .image_width = 64}}) {
    const PresetChoice choice = preset_for(data);
    for (const std::string& name : names_of(choice)) {
      EXPECT_NO_THROW(resolve({.preset = name, .settings = choice.settings})) << name << " " << data.train_tokens;
    }
  }
}

}  // namespace
}  // namespace routing::preset_choice_test
