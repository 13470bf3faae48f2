#include "routing/ops/attend/attend_tiles.h"

#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <set>

namespace routing::attend_tiles_test {
namespace {

// Every membership that sees a key is in exactly one tile, and the tile holds all the keys it sees.
TEST(AttendTiles, HoldEveryQueryOnceWithAllItsKeys) {
  for (const auto& pattern_case : support::every_pattern_case()) {
    const auto inputs = support::make_inputs(pattern_case, {.batch = 2, .tokens = 150, .ragged = true});
    const Plan& plan = inputs.plan;
    const PlanViews views = view_plan(plan);
    std::set<std::int64_t> covered;
    std::int64_t keys_before = 1 << 30;
    for (const AttendTile& tile : cut_into_tiles(plan, views)) {
      EXPECT_LE(tile.num_queries, AttendTile::kQueries);
      EXPECT_LE(tile.num_keys, keys_before);
      keys_before = tile.num_keys;
      for (std::int64_t t = 0; t < tile.num_queries; ++t) {
        const std::int64_t entry = views.group_offsets[static_cast<std::size_t>(tile.group)] + tile.query_first + t;
        EXPECT_TRUE(covered.insert(entry).second);
        const QueryView& view = views.views[static_cast<std::size_t>(entry)];
        if (view.sees_nothing()) continue;
        EXPECT_GE(view.key_from, tile.key_first);
        EXPECT_LE(view.key_to, tile.key_first + tile.num_keys);
      }
    }
    for (std::size_t entry = 0; entry < views.views.size(); ++entry) {
      EXPECT_TRUE(views.views[entry].sees_nothing() || covered.contains(static_cast<std::int64_t>(entry)));
    }
  }
}

TEST(AttendTiles, BatchesAreLimitedByKeysOrByTableRows) {
  const std::vector<AttendTile> tiles(
      1000,
      {.unit = 0, .group = 0, .query_first = 0, .num_queries = AttendTile::kQueries, .key_first = 0, .num_keys = 1024});
  const std::size_t by_keys = tiles_in_batch(tiles, 0);
  EXPECT_EQ(by_keys, 64U);
  EXPECT_EQ(tiles_in_batch(tiles, 2048), 32U);
  EXPECT_EQ(tiles_in_batch(tiles, std::int64_t{1} << 40), 1U);
  EXPECT_EQ(tiles_in_batch(std::span(tiles).first(5), 0), 5U);
}

TEST(AttendTiles, PackingShowsTheDenseMaskOfItsGroup) {
  const auto pattern_case = support::pattern_cases(AttentionKind::causal_self).front();
  const auto inputs = support::make_inputs(pattern_case, {.batch = 1, .tokens = 5});
  const PlanViews views = view_plan(inputs.plan);
  const auto tiles = cut_into_tiles(inputs.plan, views);
  const TileBatch batch = pack_tiles(inputs.plan, views, tiles, at::kCPU);
  ASSERT_EQ(batch.visible.sizes(), at::IntArrayRef({2, 5, 5}));
  EXPECT_TRUE(batch.visible[0].equal(inputs.plan.to_dense_masks(0, 0)[0]));
  EXPECT_TRUE(batch.key_row[1].equal(at::arange(5, 10)));
  EXPECT_FALSE(batch.padded_key.any().item<bool>());
}

}  // namespace
}  // namespace routing::attend_tiles_test
