#include "routing/attention/patterns/local2d.h"

#include "routing/attention/plan/plan_builder.h"

#include <algorithm>
#include <vector>

namespace routing {
namespace {

using Positions = std::vector<std::int32_t>;

// Rows or columns [begin, end).
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

std::int64_t blocks_of_a_row(const Local2dPattern& pattern) {
  return (pattern.image_width + pattern.columns - 1) / pattern.columns;
}

Interval block_columns(const Local2dPattern& pattern, std::int64_t block) {
  return {block * pattern.columns, std::min(pattern.image_width, (block + 1) * pattern.columns)};
}

// The columns that the blocks of this number read.
Interval strip_columns(const Local2dPattern& pattern, std::int64_t block) {
  const Interval own = block_columns(pattern, block);
  return {std::max<std::int64_t>(0, own.begin - pattern.beside),
          std::min(pattern.image_width, own.end + pattern.beside)};
}

// The real tokens of a rectangle, ascending.
Positions rectangle(const Local2dPattern& pattern, const Positions& valid, const Interval& rows,
                    const Interval& columns) {
  Positions members;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t pixel = row * pattern.image_width;
    const auto begin = std::lower_bound(valid.begin(), valid.end(), kPixelTokens * (pixel + columns.begin));
    const auto end = std::lower_bound(begin, valid.end(), kPixelTokens * (pixel + columns.end));
    members.insert(members.end(), begin, end);
  }
  return members;
}

struct BlockRanges {
  ListRange queries, keys;
};

}  // namespace

Plan local2d_plan(const TokenLayout& layout, const Local2dPattern& pattern, bool causal, SelfRule self) {
  PlanBuilder builder(layout, {.causal = causal, .self = self}, PlanBuilder::Lists::two);
  const std::int64_t row_tokens = kPixelTokens * pattern.image_width;
  const std::int64_t rows = (layout.num_queries + row_tokens - 1) / row_tokens;
  for (std::int64_t sequence = 0; sequence < layout.batch; ++sequence) {
    const Positions& valid = layout.valid_queries[static_cast<std::size_t>(sequence)];
    std::vector<BlockRanges> ranges;
    for (std::int64_t row = 0; row < rows; row += pattern.rows) {
      const Interval own{row, std::min(rows, row + pattern.rows)};
      const Interval around{std::max<std::int64_t>(0, row - pattern.above),
                            causal ? own.end : std::min(rows, own.end + pattern.above)};
      for (std::int64_t block = 0; block < blocks_of_a_row(pattern); ++block) {
        ranges.push_back({.queries = builder.add_queries(rectangle(pattern, valid, own, block_columns(pattern, block))),
                          .keys = builder.add_keys(rectangle(pattern, valid, around, strip_columns(pattern, block)))});
      }
    }
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      for (const BlockRanges& range : ranges) builder.add_group(range.queries, range.keys);
      builder.end_unit();
    }
  }
  return builder.build();
}

ListRules local2d_list_rules(const Local2dPattern& pattern) {
  const std::int64_t row_tokens = kPixelTokens * pattern.image_width;
  ListRules rules{.lists = blocks_of_a_row(pattern),
                  .block = pattern.rows * row_tokens,
                  .before = pattern.above * row_tokens,
                  .period = row_tokens,
                  .period_keys = {}};
  for (std::int64_t block = 0; block < rules.lists; ++block) {
    const Interval strip = strip_columns(pattern, block);
    rules.period_keys.push_back(kPixelTokens * (strip.end - strip.begin));
  }
  return rules;
}

TokenLists local2d_query_lists(const Local2dPattern& pattern, std::int64_t first, std::int64_t tokens) {
  TokenLists lists{.counts = std::vector<std::int32_t>(static_cast<std::size_t>(tokens), 1)};
  for (std::int64_t position = first; position < first + tokens; ++position) {
    const std::int64_t column = position / kPixelTokens % pattern.image_width;
    lists.lists.push_back(static_cast<std::int32_t>(column / pattern.columns));
  }
  return lists;
}

TokenLists local2d_key_lists(const Local2dPattern& pattern, std::int64_t first, std::int64_t tokens) {
  TokenLists lists;
  for (std::int64_t position = first; position < first + tokens; ++position) {
    const std::int64_t column = position / kPixelTokens % pattern.image_width;
    // Strips overlap: those that hold a column are neighbours.
    const std::int64_t begin = std::max<std::int64_t>(0, column - pattern.beside) / pattern.columns;
    const std::int64_t end = std::min(pattern.image_width - 1, column + pattern.beside) / pattern.columns + 1;
    lists.counts.push_back(static_cast<std::int32_t>(end - begin));
    for (std::int64_t list = begin; list < end; ++list) lists.lists.push_back(static_cast<std::int32_t>(list));
  }
  return lists;
}

}  // namespace routing
