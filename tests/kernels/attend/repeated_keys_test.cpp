// Keys that a query has seen in an earlier group, against plain loops over all pairs.
#include "routing/kernels/attend/repeated_keys.h"

#include "routing/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace routing::kernels::repeated_keys_test {
namespace {

// Two units of random groups; queries see windows of their groups, some with themselves left out.
struct RandomPlan {
  std::int64_t tokens;
  std::vector<std::int32_t> order, rows, member_rank;
  std::vector<std::int64_t> groups, units{0}, member_offsets{0}, member_group, view_offsets{0};
  std::vector<QueryView> views;

  RandomPlan(std::int64_t num_tokens, std::uint64_t seed) : tokens(num_tokens) {
    RandomStream stream(seed, "repeated keys");
    const auto lookback = static_cast<std::int32_t>(1 + stream.below(150));
    const auto lookahead = static_cast<std::int32_t>(stream.below(3));
    for (int unit = 0; unit < 2; ++unit) {
      std::vector<std::vector<std::pair<std::int64_t, std::int32_t>>> memberships(static_cast<std::size_t>(tokens));
      for (int group = 0; group < 5; ++group) add_group(stream, lookback, lookahead, memberships);
      units.push_back(static_cast<std::int64_t>(groups.size()) / 4);
      for (const auto& of_token : memberships) {
        for (const auto& [group, rank] : of_token) {
          member_group.push_back(group);
          member_rank.push_back(rank);
        }
        member_offsets.push_back(static_cast<std::int64_t>(member_group.size()));
      }
    }
    // Keys may stand in rows that are not their positions.
    for (const std::int32_t position : order) rows.push_back((position * 7 + 3) % static_cast<std::int32_t>(tokens));
  }

  void add_group(RandomStream& stream, std::int32_t lookback, std::int32_t lookahead,
                 std::vector<std::vector<std::pair<std::int64_t, std::int32_t>>>& memberships) {
    const auto group = static_cast<std::int64_t>(groups.size()) / 4;
    const auto begin = static_cast<std::int64_t>(order.size());
    const std::uint32_t share = 1 + stream.below(4);
    for (std::int32_t position = 0; position < tokens; ++position) {
      if (stream.below(4) >= share) continue;
      memberships[static_cast<std::size_t>(position)].emplace_back(
          group, static_cast<std::int32_t>(static_cast<std::int64_t>(order.size()) - begin));
      order.push_back(position);
    }
    const auto end = static_cast<std::int64_t>(order.size());
    groups.insert(groups.end(), {begin, end, begin, end});
    for (std::int32_t rank = 0; rank < end - begin; ++rank) {
      QueryView view{.key_from = std::max(0, rank + 1 - lookback),
                     .key_to = std::min(static_cast<std::int32_t>(end - begin), rank + 1 + lookahead),
                     .place = rank + 1};
      if (order[static_cast<std::size_t>(begin + rank)] % 3 == 0) view.self_rank = rank;
      views.push_back(view);
    }
    view_offsets.push_back(static_cast<std::int64_t>(views.size()));
  }

  AttendPlan plan(bool by_rows) const {
    return {.batch = 1,
            .heads = 2,
            .num_queries = tokens,
            .num_keys = tokens,
            .query_order = order.data(),
            .key_order = order.data(),
            .key_rows = by_rows ? rows.data() : nullptr,
            .groups = groups.data(),
            .unit_offsets = units.data(),
            .member_offsets = member_offsets.data(),
            .member_group = member_group.data(),
            .member_rank = member_rank.data(),
            .view_offsets = view_offsets.data(),
            .views = views.data()};
  }
};

TEST(RepeatedKeys, ArePlainLoopsOverAllPairs) {
  for (const std::int64_t tokens : {1, 5, 64, 100, 331}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      RandomPlan random(tokens, seed);
      const std::vector<QueryView> before = random.views;
      RepeatWords words;
      mark_repeats(random.plan(seed % 2 == 0), random.views, words);
      for (std::size_t row = 0; row + 1 < random.member_offsets.size(); ++row) {
        std::set<std::int32_t> seen;
        for (auto member = static_cast<std::size_t>(random.member_offsets[row]);
             member < static_cast<std::size_t>(random.member_offsets[row + 1]); ++member) {
          const std::int64_t group = random.member_group[member];
          const std::int64_t entry = random.view_offsets[static_cast<std::size_t>(group)] + random.member_rank[member];
          const QueryView& view = random.views[static_cast<std::size_t>(entry)];
          const QueryView& whole = before[static_cast<std::size_t>(entry)];
          for (std::int32_t rank = whole.key_from; rank < whole.key_to; ++rank) {
            if (rank == whole.self_rank) continue;
            const std::int64_t place = random.groups[static_cast<std::size_t>(group * 4 + 2)] + rank;
            const bool first = seen.insert(random.order[static_cast<std::size_t>(place)]).second;
            const bool counts = rank < view.key_to && !words.keys().holds(entry, rank);
            ASSERT_EQ(counts, first) << tokens << " tokens, seed " << seed << ", row " << row << ", rank " << rank;
          }
        }
      }
    }
  }
}

TEST(RepeatedKeys, ThereAreNoWordsWhereNoQueryIsInTwoGroups) {
  const std::vector<std::int32_t> order{0, 1}, ranks{0, 0};
  const std::vector<std::int64_t> groups{0, 1, 0, 1, 1, 2, 1, 2}, units{0, 2}, offsets{0, 1, 2}, member_group{0, 1};
  std::vector<QueryView> views{{.key_to = 1, .place = 1}, {.key_to = 1, .place = 1}};
  RepeatWords words;
  mark_repeats({.batch = 1,
                .heads = 1,
                .num_queries = 2,
                .num_keys = 2,
                .query_order = order.data(),
                .key_order = order.data(),
                .groups = groups.data(),
                .unit_offsets = units.data(),
                .member_offsets = offsets.data(),
                .member_group = member_group.data(),
                .member_rank = ranks.data(),
                .view_offsets = offsets.data(),
                .views = views.data()},
               views, words);
  EXPECT_FALSE(words.keys().any());
  EXPECT_EQ(views[1].key_to, 1);
}

}  // namespace
}  // namespace routing::kernels::repeated_keys_test
