// Windows of two dimensions: lists worked out by hand, masks by the formula, and the lists of heads that read piece by
// piece.
#include "routing/attention/patterns/local2d.h"

#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace routing::local2d_test {
namespace {

using Numbers = std::vector<std::int32_t>;

// All values from first to last.
void add(Numbers& numbers, std::int32_t first, std::int32_t last) {
  for (std::int32_t number = first; number <= last; ++number) numbers.push_back(number);
}

Numbers list_of(const at::Tensor& order, std::int64_t begin, std::int64_t end) {
  const auto* positions = order.data_ptr<std::int32_t>();
  return {positions + begin, positions + end};
}

// 3 pixels wide, blocks of 2 x 2, one pixel around; pixel 7 has no blue yet.
//
//   0 1 | 2
//   3 4 | 5
//   ----+--
//   6 7 | 8
TEST(Local2dPlan, HandWorkedLists) {
  const Local2dPattern pattern{.rows = 2, .columns = 2, .above = 1, .beside = 1, .image_width = 3};
  const Plan plan = local2d_plan(self_layout(1, 1, 23), pattern, true, SelfRule::allowed);
  ASSERT_EQ(plan.num_groups(), 4);
  std::vector<Numbers> queries(4);
  std::vector<Numbers> keys(4);
  add(queries[0], 0, 5);  // pixels 0 and 1
  add(queries[0], 9, 14);
  add(keys[0], 0, 17);    // the first two rows
  add(queries[1], 6, 8);  // pixels 2 and 5
  add(queries[1], 15, 17);
  add(keys[1], 3, 8);  // pixels 1, 2, 4 and 5
  add(keys[1], 12, 17);
  add(queries[2], 18, 22);  // pixel 6 and what there is of 7
  add(keys[2], 9, 22);      // the row above and their own
  add(keys[3], 12, 17);     // of pixel 8 there is nothing yet
  add(keys[3], 21, 22);
  for (std::int64_t group = 0; group < 4; ++group) {
    const GroupRange range = group_range(plan, group);
    EXPECT_EQ(list_of(plan.query_order, range.q_begin, range.q_end), queries[static_cast<std::size_t>(group)]) << group;
    EXPECT_EQ(list_of(plan.key_order, range.k_begin, range.k_end), keys[static_cast<std::size_t>(group)]) << group;
  }
  // The green of pixel 4 reads the two rows up to itself; the red of pixel 7 has nothing of row 0.
  const at::Tensor counts = plan.to_dense_counts()[0][0];
  EXPECT_EQ(counts[13].sum().item<int>(), 14);
  EXPECT_EQ(counts[21].sum().item<int>(), 13);
  EXPECT_EQ(counts[21][8].item<int>(), 0);
}

struct Case {
  Local2dPattern pattern;
  std::int64_t tokens = 0;
};

// Whole and ragged blocks, incomplete rows and pixels, windows wider than the image, an image of one column.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Local2dPattern& pattern :
       {Local2dPattern{.rows = 2, .columns = 2, .above = 1, .beside = 1, .image_width = 4},
        Local2dPattern{.rows = 2, .columns = 3, .above = 3, .beside = 2, .image_width = 7},
        Local2dPattern{.rows = 1, .columns = 1, .above = 0, .beside = 0, .image_width = 5},
        Local2dPattern{.rows = 3, .columns = 2, .above = 0, .beside = 4, .image_width = 6},
        Local2dPattern{.rows = 2, .columns = 9, .above = 9, .beside = 9, .image_width = 4},
        Local2dPattern{.rows = 2, .columns = 4, .above = 1, .beside = 0, .image_width = 1}}) {
    for (const std::int64_t tokens : {1, 2, 3, 17, 48, 85, 101}) all.push_back({pattern, tokens});
  }
  return all;
}

// The set of local2d.h, pixel by pixel.
bool reads(const Local2dPattern& pattern, std::int64_t i, std::int64_t j, bool causal) {
  const std::int64_t row = i / 3 / pattern.image_width;
  const std::int64_t column = i / 3 % pattern.image_width;
  const std::int64_t first_row = row - row % pattern.rows;
  const std::int64_t first_column = column - column % pattern.columns;
  const std::int64_t other_row = j / 3 / pattern.image_width;
  const std::int64_t other_column = j / 3 % pattern.image_width;
  const bool beside =
      other_column >= first_column - pattern.beside && other_column < first_column + pattern.columns + pattern.beside;
  const bool above = other_row >= first_row - pattern.above;
  if (causal) return beside && above && j <= i;
  return beside && above && other_row < first_row + pattern.rows + pattern.above;
}

TEST(Local2dPlan, ReadsTheRectangleAroundItsBlock) {
  for (const auto& [pattern, tokens] : cases()) {
    for (const bool causal : {true, false}) {
      const at::Tensor counts =
          local2d_plan(self_layout(2, 2, tokens), pattern, causal, SelfRule::allowed).to_dense_counts();
      at::Tensor expected = at::zeros({tokens, tokens}, at::kInt);
      auto cell = expected.accessor<std::int32_t, 2>();
      for (std::int64_t i = 0; i < tokens; ++i) {
        for (std::int64_t j = 0; j < tokens; ++j) cell[i][j] = reads(pattern, i, j, causal) ? 1 : 0;
      }
      EXPECT_TRUE(counts.equal(expected.expand_as(counts)))
          << tokens << " tokens of images " << pattern.image_width << " wide, blocks of " << pattern.columns;
    }
  }
}

TEST(Local2dPlan, LeavesPaddingOutAndMovesNobody) {
  const Local2dPattern pattern{.rows = 2, .columns = 3, .above = 1, .beside = 2, .image_width = 7};
  const at::Tensor valid = support::ragged_mask(3, 100, 8);
  const at::Tensor counts =
      local2d_plan(self_layout(3, 1, 100, valid), pattern, true, SelfRule::allowed).to_dense_counts();
  const auto real = valid.accessor<bool, 2>();
  const auto count = counts.accessor<std::int32_t, 4>();
  for (std::int64_t b = 0; b < 3; ++b) {
    for (std::int64_t i = 0; i < 100; ++i) {
      for (std::int64_t j = 0; j < 100; ++j) {
        ASSERT_EQ(count[b][0][i][j], real[b][i] && real[b][j] && reads(pattern, i, j, true) ? 1 : 0) << i << " " << j;
      }
    }
  }
}

// A query's list, from the first rank that it reads on, holds the keys of the formula, at each position.
TEST(Local2dLists, HoldTheRectangleFromTheFirstRankOn) {
  for (const auto& [pattern, tokens] : cases()) {
    const ListRules rules = local2d_list_rules(pattern);
    const TokenLists query_lists = local2d_query_lists(pattern, 0, tokens);
    const TokenLists key_lists = local2d_key_lists(pattern, 0, tokens);
    std::vector<Numbers> lists(static_cast<std::size_t>(rules.lists));
    const std::int32_t* next = key_lists.lists.data();
    for (std::int64_t i = 0; i < tokens; ++i) {
      for (std::int32_t n = key_lists.counts[static_cast<std::size_t>(i)]; n > 0; --n) {
        lists.at(static_cast<std::size_t>(*next++)).push_back(static_cast<std::int32_t>(i));
      }
      ASSERT_EQ(query_lists.counts[static_cast<std::size_t>(i)], 1);
      const std::int32_t list = query_lists.lists[static_cast<std::size_t>(i)];
      Numbers expected;
      for (std::int32_t j = 0; j <= i; ++j) {
        if (reads(pattern, i, j, true)) expected.push_back(j);
      }
      const Numbers& members = lists.at(static_cast<std::size_t>(list));
      const std::int64_t first = rules.first_rank(list, i);
      ASSERT_EQ(Numbers(members.begin() + first, members.end()), expected)
          << "token " << i << " of images " << pattern.image_width << " wide";
    }
  }
}

// Pieces that begin anywhere have the lists of the whole.
TEST(Local2dLists, DoNotDependOnWhereAPieceBegins) {
  const Local2dPattern pattern{.rows = 2, .columns = 3, .above = 1, .beside = 2, .image_width = 7};
  const TokenLists whole = local2d_key_lists(pattern, 0, 60);
  const TokenLists first = local2d_key_lists(pattern, 0, 20);
  const TokenLists rest = local2d_key_lists(pattern, 20, 40);
  Numbers joined = first.lists;
  joined.insert(joined.end(), rest.lists.begin(), rest.lists.end());
  EXPECT_EQ(joined, whole.lists);
  EXPECT_EQ(std::accumulate(whole.counts.begin(), whole.counts.end(), 0), static_cast<int>(whole.lists.size()));
  EXPECT_TRUE(std::equal(rest.counts.begin(), rest.counts.end(), whole.counts.begin() + 20));
}

}  // namespace
}  // namespace routing::local2d_test
