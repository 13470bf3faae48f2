#include "routing/evaluation/recurrence.h"

#include "routing/core/error.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace routing::recurrence_test {
namespace {

using Ids = std::vector<std::int64_t>;

Ids ids_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// The definition, word by word.
Ids distances_by_plain_loops(const Ids& tokens, std::int64_t context) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  Ids distances(tokens.size(), 0);
  for (std::int64_t i = context; i < n; ++i) {
    for (std::int64_t j = i - 1; j >= context && distances[static_cast<std::size_t>(i)] == 0; --j) {
      if (std::equal(tokens.begin() + i - context, tokens.begin() + i, tokens.begin() + j - context)) {
        distances[static_cast<std::size_t>(i)] = i - j;
      }
    }
  }
  return distances;
}

TEST(RecurrenceDistances, ByHand) {
  // "ab" stands before places 2, 5 and 9, and nothing else comes twice before a token.
  EXPECT_EQ(recurrence_distances(ids_of("abxabyzabx"), 2), (Ids{0, 0, 0, 0, 0, 3, 0, 0, 0, 4}));
  EXPECT_EQ(recurrence_distances(ids_of("aaaa"), 1), (Ids{0, 0, 1, 1})) << "overlapping, and the first has no context";
  EXPECT_EQ(recurrence_distances(ids_of("aaaaa"), 2), (Ids{0, 0, 0, 1, 1}));
  EXPECT_EQ(recurrence_distances(ids_of("abcab"), 1), (Ids{0, 0, 0, 0, 3}));
  EXPECT_EQ(recurrence_distances(ids_of("ab"), 8), (Ids{0, 0}));
  EXPECT_EQ(recurrence_distances({}, 8), Ids{});
  EXPECT_THROW(recurrence_distances(ids_of("ab"), 0), InputError);
}

TEST(RecurrenceDistances, EqualPlainLoops) {
  for (const std::int64_t context : {1, 2, 3, 8}) {
    for (const std::int64_t ids : {2, 3, 50}) {
      const at::Tensor drawn = random_tokens(1, 400, ids, static_cast<std::uint64_t>(10 * context + ids));
      const Ids tokens(drawn.data_ptr<std::int64_t>(), drawn.data_ptr<std::int64_t>() + 400);
      EXPECT_EQ(recurrence_distances(tokens, context), distances_by_plain_loops(tokens, context))
          << context << " " << ids;
    }
  }
}

TEST(RecurrenceClass, NearReachesAsFarAsLocalHeads) {
  EXPECT_EQ(recurrence_class(0, 100), Recurrence::never);
  EXPECT_EQ(recurrence_class(1, 100), Recurrence::near);
  EXPECT_EQ(recurrence_class(100, 100), Recurrence::near);
  EXPECT_EQ(recurrence_class(101, 100), Recurrence::far);
  EXPECT_EQ(recurrence_class(1, 0), Recurrence::far) << "without local heads nothing is near";
  EXPECT_EQ(to_string(Recurrence::near), "near");
  EXPECT_EQ(to_string(Recurrence::far), "far");
  EXPECT_EQ(to_string(Recurrence::never), "never");
}

TEST(LocalReach, IsTheSumOfTheWindowsOfLayersWithLocalHeads) {
  ExperimentConfig config = small_experiment("routing");
  config.model.layers = 3;
  std::get<LocalPattern>(config.patterns.local.pattern).window = 10;
  EXPECT_EQ(local_reach(config), 30);
  std::get<LocalPattern>(config.patterns.local.pattern).form = LocalForm::block;
  EXPECT_EQ(local_reach(config), 60) << "a block and the one before it";
  config = small_experiment("full");
  config.model.layers = 3;
  std::get<LocalPattern>(config.patterns.local.pattern).window = 10;
  config.attention.content_heads = config.attention.heads;
  config.attention.content_layers = "top 1";
  EXPECT_EQ(local_reach(config), 20) << "the top layer has no local head";
}

TEST(UsualContext, IsShorterForWords) {
  EXPECT_EQ(usual_context(TokenKind::bytes), 8);
  EXPECT_EQ(usual_context(TokenKind::subpixels), 8);
  EXPECT_EQ(usual_context(TokenKind::words), 2);
  EXPECT_EQ(usual_context(TokenKind::subwords), 2);
}

TEST(WindowRecurrence, SumsWhatCountsByClassAndOctave) {
  // Distances: 0 0 0 0 0 3 0 0 0 4.
  const Ids tokens = ids_of("abxabyzabx");
  std::vector<float> nats(tokens.size());
  std::iota(nats.begin(), nats.end(), 1.0F);  // the token at place i costs i + 1
  const WindowRecurrence all = window_recurrence({.tokens = tokens, .nats = nats}, {.context = 2, .reach = 3});
  EXPECT_EQ(all.classes[0].targets, 1);
  EXPECT_EQ(all.classes[0].nats, 6.0);
  EXPECT_EQ(all.classes[1].targets, 1);
  EXPECT_EQ(all.classes[1].nats, 10.0);
  EXPECT_EQ(all.classes[2].targets, 8);
  EXPECT_EQ(all.classes[2].nats, 55.0 - 16.0);
  EXPECT_EQ(all.all().targets, 10);
  EXPECT_EQ(all.all().nats, 55.0);
  ASSERT_EQ(all.octaves.size(), 3U) << "1, 2-3, 4-7";
  EXPECT_EQ(all.octaves[0].targets, 0);
  EXPECT_EQ(all.octaves[1].targets, 1);
  EXPECT_EQ(all.octaves[1].nats, 6.0);
  EXPECT_EQ(all.octaves[2].nats, 10.0);
  // Context is looked at, but does not count.
  const WindowRecurrence last =
      window_recurrence({.tokens = tokens, .nats = nats, .scored_from = 6}, {.context = 2, .reach = 3});
  EXPECT_EQ(last.all().targets, 4);
  EXPECT_EQ(last.classes[1].nats, 10.0);
  EXPECT_EQ(last.tokens_hash, all.tokens_hash);
  const WindowRecurrence other =
      window_recurrence({.tokens = ids_of("abxabyzaby"), .nats = nats}, {.context = 2, .reach = 3});
  EXPECT_NE(other.tokens_hash, all.tokens_hash);
  EXPECT_THROW(window_recurrence({.tokens = tokens, .nats = std::span(nats).first(9)}, {}), InputError);
}

}  // namespace
}  // namespace routing::recurrence_test
