#include "routing/attention/patterns/position_patterns.h"

#include "routing/attention/plan/plan_builder.h"
#include "routing/core/parallel.h"
#include "routing/core/random.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

namespace routing {
namespace {

using Positions = std::vector<std::int32_t>;

PlanBuilder::Lists lists_for(const TokenLayout& layout) {
  return layout.cross ? PlanBuilder::Lists::two : PlanBuilder::Lists::one;
}

// The real tokens of one sequence, appended once; every head's groups point into them.
struct SequenceLists {
  ListRange queries, keys;
};

SequenceLists add_sequence(PlanBuilder& builder, const TokenLayout& layout, std::int64_t sequence) {
  const auto index = static_cast<std::size_t>(sequence);
  const ListRange queries = builder.add_queries(layout.valid_queries[index]);
  return {queries, layout.cross ? builder.add_keys(layout.valid_keys[index]) : queries};
}

// One group with all real tokens of the sequence, for every head.
Plan one_group_plan(const TokenLayout& layout, const VisibilityRules& rules) {
  PlanBuilder builder(layout, rules, lists_for(layout));
  for (std::int64_t sequence = 0; sequence < layout.batch; ++sequence) {
    const SequenceLists lists = add_sequence(builder, layout, sequence);
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      builder.add_group(lists.queries, lists.keys);
      builder.end_unit();
    }
  }
  return builder.build();
}

// The part of a range whose positions lie in [first, last).
ListRange part_between(const Positions& positions, std::int64_t list_begin, std::int64_t first, std::int64_t last) {
  const auto begin = std::lower_bound(positions.begin(), positions.end(), first);
  const auto end = std::lower_bound(begin, positions.end(), last);
  return {list_begin + (begin - positions.begin()), list_begin + (end - positions.begin())};
}

Plan block_plan(const TokenLayout& layout, const LocalPattern& pattern, const VisibilityRules& rules) {
  PlanBuilder builder(layout, rules, lists_for(layout));
  const std::int64_t query_block = pattern.window;
  const std::int64_t blocks = (layout.num_queries + query_block - 1) / query_block;
  const std::int64_t key_block =
      layout.cross ? std::max<std::int64_t>(1, (layout.num_keys + blocks - 1) / std::max<std::int64_t>(1, blocks))
                   : query_block;
  const std::int64_t blocks_after = rules.causal ? 0 : pattern.flange;
  for (std::int64_t sequence = 0; sequence < layout.batch; ++sequence) {
    const SequenceLists lists = add_sequence(builder, layout, sequence);
    const Positions& queries = layout.valid_queries[static_cast<std::size_t>(sequence)];
    const Positions& keys = layout.valid_keys[static_cast<std::size_t>(sequence)];
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        builder.add_group(part_between(queries, lists.queries.begin, block * query_block, (block + 1) * query_block),
                          part_between(keys, lists.keys.begin, (block - pattern.flange) * key_block,
                                       (block + 1 + blocks_after) * key_block));
      }
      builder.end_unit();
    }
  }
  return builder.build();
}

// A random subset of the real tokens, ascending.
Positions random_members(const Positions& valid, std::int64_t window, RandomStream stream) {
  const auto population = static_cast<std::int32_t>(valid.size());
  const auto count = static_cast<std::int32_t>(std::min<std::int64_t>(window, population));
  Positions members = sorted_sample(stream, population, count);
  for (std::int32_t& member : members) member = valid[static_cast<std::size_t>(member)];
  return members;
}

}  // namespace

Plan full_plan(const TokenLayout& layout, bool causal, SelfRule self) {
  return one_group_plan(layout, {.causal = causal, .self = self});
}

Plan local_plan(const TokenLayout& layout, const LocalPattern& pattern, bool causal, SelfRule self) {
  if (pattern.form == LocalForm::block) return block_plan(layout, pattern, {.causal = causal, .self = self});
  const std::int64_t lookahead = causal ? 0 : pattern.lookahead.value_or(pattern.window - 1);
  return one_group_plan(layout, {.lookback = pattern.window, .lookahead = lookahead, .causal = causal, .self = self});
}

Plan strided_plan(const TokenLayout& layout, const StridedPattern& pattern, bool causal, SelfRule self) {
  PlanBuilder builder(layout, {.causal = causal, .self = self}, PlanBuilder::Lists::one);
  // No more classes than positions, however long the stride.
  const std::int64_t classes = std::min(pattern.stride, layout.num_queries);
  for (std::int64_t sequence = 0; sequence < layout.batch; ++sequence) {
    std::vector<Positions> by_residue(static_cast<std::size_t>(classes));
    for (const std::int32_t position : layout.valid_queries[static_cast<std::size_t>(sequence)]) {
      by_residue[static_cast<std::size_t>(position % pattern.stride)].push_back(position);
    }
    std::vector<ListRange> ranges;
    ranges.reserve(by_residue.size());
    for (const Positions& members : by_residue) ranges.push_back(builder.add_queries(members));
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      for (const ListRange& range : ranges) builder.add_group(range, range);
      builder.end_unit();
    }
  }
  return builder.build();
}

Plan fixed_plan(const TokenLayout& layout, const FixedPattern& pattern, bool causal, SelfRule self) {
  PlanBuilder builder(layout, {.causal = causal, .self = self}, PlanBuilder::Lists::two);
  for (std::int64_t sequence = 0; sequence < layout.batch; ++sequence) {
    const Positions& valid = layout.valid_queries[static_cast<std::size_t>(sequence)];
    Positions summaries;
    std::copy_if(valid.begin(), valid.end(), std::back_inserter(summaries),
                 [&](std::int32_t position) { return sums_up_its_cell(pattern, position); });
    const ListRange queries = builder.add_queries(valid);
    const ListRange keys = builder.add_keys(summaries);
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      builder.add_group(queries, keys);
      builder.end_unit();
    }
  }
  return builder.build();
}

Plan random_plan(const TokenLayout& layout, const RandomPattern& pattern, bool causal, SelfRule self,
                 std::uint64_t key) {
  const auto groups = static_cast<std::size_t>(pattern.groups);
  const auto units = static_cast<std::size_t>(layout.batch * layout.heads);
  std::vector<Positions> queries(units * groups);
  std::vector<Positions> keys(layout.cross ? units * groups : 0);
  parallel_for(0, layout.batch * layout.heads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const auto sequence = static_cast<std::size_t>(unit / layout.heads);
      const auto head = static_cast<std::uint64_t>(unit % layout.heads);
      for (std::size_t group = 0; group < groups; ++group) {
        const std::size_t place = static_cast<std::size_t>(unit) * groups + group;
        queries[place] = random_members(layout.valid_queries[sequence], pattern.window,
                                        RandomStream(key, "random pattern queries", {head, group}));
        if (layout.cross) {
          keys[place] = random_members(layout.valid_keys[sequence], pattern.window,
                                       RandomStream(key, "random pattern keys", {head, group}));
        }
      }
    }
  });
  PlanBuilder builder(layout, {.causal = causal, .self = self}, lists_for(layout));
  for (std::size_t unit = 0; unit < units; ++unit) {
    for (std::size_t group = 0; group < groups; ++group) {
      const ListRange members = builder.add_queries(queries[unit * groups + group]);
      builder.add_group(members, layout.cross ? builder.add_keys(keys[unit * groups + group]) : members);
    }
    builder.end_unit();
  }
  return builder.build();
}

}  // namespace routing
