#include "routing/attention/cache/head_cache.h"

#include "routing/core/error.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace routing {
namespace {

// What ranks are aligned to in kernels/attend/attend_block.h: a query's bits depend on where its keys stand in tiles of
// this size.
constexpr std::int64_t kTile = kernels::kAttendTile;
constexpr std::int64_t kFewestRows = 256;

const float* row_of(const kernels::HeadRows<const float>& rows, std::int64_t sequence, std::int64_t head,
                    std::int64_t token) {
  return rows.data + sequence * rows.batch_stride + head * rows.head_stride + token * rows.row_stride;
}

std::int32_t narrow(std::int64_t number) {
  return static_cast<std::int32_t>(number);
}

}  // namespace

// Every membership of the unit's queries; ranks are those of the lists.
struct HeadCache::UnitQueries {
  struct Membership {
    std::int32_t list = 0;
    std::int32_t origin = 0;  // the rank from which the group counts
    std::int32_t token = 0;
    QueryView view = {};
  };
  std::vector<Membership> memberships;  // in the order of time, then by group
  // Memory of add_groups.
  std::vector<std::int64_t> groups;  // of each membership
  std::vector<std::int32_t> ranks;
  std::vector<std::size_t> next;  // of each token
};

HeadCache::HeadCache(const HeadCacheShape& shape)
    : shape_(shape), store_(shape.key_dim, shape.value_dim, shape.halves) {}

HeadCache::Sequence& HeadCache::at(std::int64_t sequence) {
  return const_cast<Sequence&>(static_cast<const HeadCache&>(*this).at(sequence));
}

const HeadCache::Sequence& HeadCache::at(std::int64_t sequence) const {
  require<InputError>(sequence >= 0 && sequence < static_cast<std::int64_t>(sequences_.size()) &&
                          sequences_[static_cast<std::size_t>(sequence)].exists,
                      "cache: there is no sequence ", sequence, "; add it first");
  return sequences_[static_cast<std::size_t>(sequence)];
}

void HeadCache::add_sequence(std::int64_t sequence) {
  require<InputError>(sequence >= 0, "cache: a sequence has the number ", sequence, ", but numbers count from 0");
  const auto index = static_cast<std::size_t>(sequence);
  if (index >= sequences_.size()) sequences_.resize(index + 1);
  require<InputError>(!sequences_[index].exists, "cache: there is a sequence ", sequence, " already; drop it first");
  sequences_[index].exists = true;
  sequences_[index].lists.resize(static_cast<std::size_t>(shape_.heads * shape_.rules.lists));
}

void HeadCache::fork_sequence(std::int64_t from, std::int64_t to) {
  at(from);  // is it there? Nothing is added otherwise
  add_sequence(to);
  const Sequence& read = at(from);
  Sequence& made = at(to);
  made.lacks_past = read.lacks_past;
  made.length = read.length;
  for (std::size_t number = 0; number < read.lists.size(); ++number) {
    // Without the places that are empty.
    const List& list = read.lists[number];
    List& copy = made.lists[number];
    copy.rows.assign(list.rows.begin() + list.first, list.rows.end());
    copy.positions.assign(list.positions.begin() + list.first, list.positions.end());
    copy.dropped = list.dropped;
    copy.origin = list.origin;
    copy.next_origins = list.next_origins;
  }
  for_each_place(made, [&](std::size_t row) { ++holders_[row]; });
}

void HeadCache::drop_sequence(std::int64_t sequence) {
  Sequence& dropped = at(sequence);
  if (dropped.kept) {
    kept_places_ -= places_of(dropped);
    for_each_place(dropped, [&](std::size_t row) { rows_kept_ -= --keepers_[row] == 0 ? 1 : 0; });
  }
  for (List& list : dropped.lists) let_go(dropped, list, list.end_rank());
  free_rows_.insert(free_rows_.end(), dropped.spare.begin(), dropped.spare.end());
  dropped = {};
}

std::int64_t HeadCache::length(std::int64_t sequence) const {
  return at(sequence).length;
}

void HeadCache::reserve(std::int64_t rows) {
  const std::int64_t needed = used_rows_ + rows - static_cast<std::int64_t>(free_rows_.size());
  if (needed > store_.capacity()) store_.resize(needed, used_rows_);
}

std::int32_t HeadCache::free_row() {
  if (free_rows_.empty()) {
    if (used_rows_ == store_.capacity()) reserve(std::max(kFewestRows, used_rows_ / 2));
    holders_.push_back(0);
    return narrow(used_rows_++);
  }
  const std::int32_t row = free_rows_.back();
  free_rows_.pop_back();
  return row;
}

void HeadCache::begin_parts(std::span<const std::int64_t> sequences, std::int64_t tokens) {
  check_sequences(sequences, tokens);
  const auto needed = static_cast<std::size_t>(shape_.memory ? 0 : shape_.heads * tokens);
  for (const std::int64_t number : sequences) {
    std::vector<std::int32_t>& spare = at(number).spare;
    // What longer parts have left belongs to all.
    for (; spare.size() > 2 * needed; spare.pop_back()) free_rows_.push_back(spare.back());
    while (spare.size() < needed) spare.push_back(free_row());
  }
  in_parts_ = true;
}

std::int32_t HeadCache::take_row(Sequence& sequence, const float* key, const float* value) {
  std::int32_t row = 0;
  if (in_parts_) {
    require<InputError>(!sequence.spare.empty(),
                        "cache: a part has more tokens than were announced; tell begin_parts() how many there are");
    row = sequence.spare.back();
    sequence.spare.pop_back();
  } else {
    row = free_row();
  }
  store_.write(row, key, value);
  return row;
}

void HeadCache::join(List& list, std::int32_t row, std::int32_t position) {
  list.rows.push_back(row);
  list.positions.push_back(position);
  ++holders_[static_cast<std::size_t>(row)];
}

// All keys of the list below this rank.
void HeadCache::let_go(Sequence& sequence, List& list, std::int64_t rank) {
  std::vector<std::int32_t>& to = in_parts_ ? sequence.spare : free_rows_;
  for (; list.dropped < rank; ++list.dropped, ++list.first) {
    const std::int32_t row = list.rows[static_cast<std::size_t>(list.first)];
    // Forks share rows, and may be in other threads. A single holder is this list, and others do not come meanwhile.
    const std::atomic_ref<std::uint32_t> holders(holders_[static_cast<std::size_t>(row)]);
    if (holders.load(std::memory_order_acquire) == 1) {
      holders.store(0, std::memory_order_relaxed);
    } else if (holders.fetch_sub(1, std::memory_order_acq_rel) > 1) {
      continue;
    }
    to.push_back(row);
  }
  if (list.first < kTile || 2 * list.first < static_cast<std::int64_t>(list.rows.size())) return;
  list.rows.erase(list.rows.begin(), list.rows.begin() + list.first);
  list.positions.erase(list.positions.begin(), list.positions.begin() + list.first);
  list.first = 0;
}

// Keys beyond what queries look back to, or before the horizon.
void HeadCache::let_go_of_unread(Sequence& sequence, List& list) {
  const std::int64_t end = list.end_rank();
  let_go(sequence, list, std::max(list.origin, end - shape_.rules.lookback.value_or(end)));
}

void HeadCache::reach(List* lists, std::int64_t position) const {
  const auto [segment, memory] = shape_.horizon;
  if (segment == 0) return;
  const std::int64_t remembered_at = position - shape_.key_shift + memory;
  const bool begins_memory = position >= shape_.key_shift && remembered_at % segment == 0;
  const bool begins_segment = position % segment == 0 && position >= memory;
  if (!begins_memory && !begins_segment) return;
  for (List* list = lists; list != lists + shape_.rules.lists; ++list) {
    if (begins_memory) list->next_origins.push_back(list->end_rank());
    if (begins_segment) {
      list->origin = list->next_origins.front();
      list->next_origins.erase(list->next_origins.begin());
    }
  }
}

// Keys join before the query of their own token reads: it sees all keys up to its own time, and no later one.
void HeadCache::read_unit(const NewTokens& tokens, std::size_t index, std::int64_t head, UnitQueries& unit) {
  const auto sequence_index = static_cast<std::int64_t>(index);
  Sequence& sequence = at(tokens.sequences[index]);
  List* lists = sequence.lists.data() + head * shape_.rules.lists;
  const auto of_unit = [&](std::span<const TokenLists> all) -> const TokenLists& {
    const std::size_t each = all.size() / tokens.sequences.size();
    return all[index * each + (each == 1 ? 0 : static_cast<std::size_t>(head))];
  };
  const TokenLists& query_lists = of_unit(tokens.query_lists);
  const TokenLists& key_lists = tokens.key_lists.empty() ? query_lists : of_unit(tokens.key_lists);
  const std::int32_t* next_query_list = query_lists.lists.data();
  const std::int32_t* next_key_list = key_lists.lists.data();
  unit.memberships.clear();
  for (std::int64_t token = 0; token < tokens.tokens; ++token) {
    const std::int64_t position = sequence.length + token;
    reach(lists, position);
    if (!shape_.memory && key_lists.counts[static_cast<std::size_t>(token)] > 0) {
      const std::int32_t row = take_row(sequence, row_of(tokens.keys, sequence_index, head, token),
                                        row_of(tokens.values, sequence_index, head, token));
      for (std::int32_t n = key_lists.counts[static_cast<std::size_t>(token)]; n > 0; --n) {
        sequence.touched.push_back(narrow(head * shape_.rules.lists) + *next_key_list);
        join(lists[*next_key_list++], row, narrow(position));
      }
    }
    const std::size_t first = unit.memberships.size();
    bool alone = true;
    for (std::int32_t n = query_lists.counts[static_cast<std::size_t>(token)]; n > 0; --n) {
      UnitQueries::Membership membership{.list = *next_query_list++, .token = narrow(token)};
      const List& list = lists[membership.list];
      const std::int64_t end = list.end_rank();
      std::int64_t from = list.origin;
      membership.origin = narrow(list.origin);
      if (shape_.rules.block > 0) {
        from = std::max(list.origin, shape_.rules.first_rank(membership.list, position));
        membership.origin = narrow(from);
      } else if (shape_.rules.lookback) {
        from = std::max(list.origin, end - *shape_.rules.lookback);
      }
      membership.view = {.key_from = narrow(from), .key_to = narrow(end), .place = narrow(end)};
      const bool sees_self = !shape_.memory && end > from && list.positions[list.place(end - 1)] == position;
      const bool skips_self =
          shape_.self == SelfRule::only_if_alone || (shape_.self == SelfRule::only_if_alone_in_group && end - from > 1);
      if (sees_self && skips_self) membership.view.self_rank = narrow(end - 1);
      alone = alone && membership.view.sees_nothing();
      unit.memberships.push_back(membership);
    }
    if (!alone || shape_.self != SelfRule::only_if_alone) continue;
    for (std::size_t n = first; n < unit.memberships.size(); ++n) unit.memberships[n].view.self_rank = -1;
  }
}

void HeadCache::add_groups(const Sequence& sequence, std::int64_t head, UnitQueries& unit, KeptPlan& plan) const {
  using Membership = UnitQueries::Membership;
  std::vector<Membership>& sorted = unit.memberships;
  const auto before_in_groups = [](const Membership& a, const Membership& b) {
    return a.list != b.list ? a.list < b.list : a.origin < b.origin;
  };
  // Those of one token are in order already.
  if (plan.num_queries > 1) std::stable_sort(sorted.begin(), sorted.end(), before_in_groups);
  unit.groups.clear();
  unit.ranks.clear();
  for (std::size_t first = 0; first < sorted.size();) {
    std::size_t last = first + 1;
    while (last < sorted.size() && sorted[last].list == sorted[first].list &&
           sorted[last].origin == sorted[first].origin) {
      ++last;
    }
    const List& list = sequence.lists[static_cast<std::size_t>(head * shape_.rules.lists + sorted[first].list)];
    // Windows move on with time: the first query sees the first keys and the last one the last.
    const std::int64_t from = sorted[first].view.key_from;
    const std::int64_t to = sorted[last - 1].view.key_to;
    const std::int64_t base = from - (from - sorted[first].origin) % kTile;
    const auto group = static_cast<std::int64_t>(plan.groups.size()) / 4;
    const auto q_begin = static_cast<std::int64_t>(plan.query_order.size());
    const auto k_begin = static_cast<std::int64_t>(plan.key_order.size());
    for (std::size_t n = first; n < last; ++n) {
      plan.query_order.push_back(sorted[n].token);
      QueryView view = sorted[n].view;
      view.key_from -= narrow(base);
      view.key_to -= narrow(base);
      view.place -= narrow(base);
      if (view.self_rank >= 0) view.self_rank -= narrow(base);
      plan.views.views.push_back(view);
      unit.groups.push_back(group);
      unit.ranks.push_back(narrow(static_cast<std::int64_t>(n - first)));
    }
    if (from < to) {
      // Places that nobody sees, up to the first key, hold that key's row; positions must ascend there too.
      const std::size_t place = list.place(from);
      for (std::int64_t before = from - base; before > 0; --before) {
        plan.key_order.push_back(list.positions[place] - narrow(before));
        plan.key_rows.push_back(list.rows[place]);
      }
      const auto add = [&](const std::vector<std::int32_t>& source, std::vector<std::int32_t>& target) {
        const auto begin = source.begin() + static_cast<std::ptrdiff_t>(place);
        target.insert(target.end(), begin, begin + (to - from));
      };
      add(list.positions, plan.key_order);
      add(list.rows, plan.key_rows);
    }
    const auto k_end = static_cast<std::int64_t>(plan.key_order.size());
    plan.groups.insert(plan.groups.end(), {q_begin, q_begin + static_cast<std::int64_t>(last - first), k_begin, k_end});
    plan.views.group_offsets.push_back(static_cast<std::int64_t>(plan.views.views.size()));
    first = last;
  }
  plan.unit_offsets.push_back(static_cast<std::int64_t>(plan.groups.size()) / 4);
  add_members(unit, plan);
}

// By counting: groups are visited in order, so each token's ascend.
void HeadCache::add_members(UnitQueries& unit, KeptPlan& plan) {
  std::size_t place = plan.member_group.size();
  unit.next.assign(static_cast<std::size_t>(plan.num_queries), 0);
  for (const auto& membership : unit.memberships) ++unit.next[static_cast<std::size_t>(membership.token)];
  for (std::size_t& next : unit.next) {
    const std::size_t count = next;
    next = place;
    place += count;
    plan.member_offsets.push_back(static_cast<std::int64_t>(place));
  }
  plan.member_group.resize(place);
  plan.member_rank.resize(place);
  for (std::size_t n = 0; n < unit.memberships.size(); ++n) {
    const std::size_t to = unit.next[static_cast<std::size_t>(unit.memberships[n].token)]++;
    plan.member_group[to] = unit.groups[n];
    plan.member_rank[to] = unit.ranks[n];
  }
}

void HeadCache::check_sequences(std::span<const std::int64_t> sequences, std::int64_t tokens) const {
  for (auto sequence = sequences.begin(); sequence != sequences.end(); ++sequence) {
    require<InputError>(std::find(sequences.begin(), sequence, *sequence) == sequence, "cache: sequence ", *sequence,
                        " is named twice; give its tokens in one row");
    require<InputError>(!at(*sequence).kept, "cache: sequence ", *sequence,
                        " is kept as it is; read with a fork of it");
    require<InputError>(!at(*sequence).lacks_past, "cache: sequence ", *sequence, " begins at position ",
                        at(*sequence).length,
                        ", but its keys before that are missing; read it with CachedContext::pieces");
    require<InputError>(at(*sequence).length <= kMostTokens - tokens, "cache: sequence ", *sequence, " would have ",
                        at(*sequence).length + tokens, " tokens, but ", kMostTokens, " are the most");
  }
}

KeptPlan HeadCache::append(const NewTokens& tokens, KeptPlan discarded) {
  const std::size_t units = tokens.sequences.size() * static_cast<std::size_t>(shape_.heads);
  const auto fit = [&](std::span<const TokenLists> all) {
    return all.size() == units || all.size() == tokens.sequences.size();
  };
  require<InputError>(fit(tokens.query_lists) && (tokens.key_lists.empty() || fit(tokens.key_lists)),
                      "cache: ", tokens.query_lists.size(), " lists of queries and ", tokens.key_lists.size(),
                      " of keys, but there are ", units, " units of ", tokens.sequences.size(), " sequences");
  // Parts were checked when they began.
  if (!in_parts_) check_sequences(tokens.sequences, tokens.tokens);
  KeptPlan plan = std::move(discarded);
  plan.clear();
  plan.batch = static_cast<std::int64_t>(tokens.sequences.size());
  plan.heads = shape_.heads;
  plan.num_queries = tokens.tokens;
  for (auto* offsets : {&plan.unit_offsets, &plan.member_offsets, &plan.views.group_offsets}) offsets->push_back(0);
  UnitQueries unit;
  for (std::size_t index = 0; index < tokens.sequences.size(); ++index) {
    Sequence& sequence = at(tokens.sequences[index]);
    for (std::int64_t head = 0; head < shape_.heads; ++head) {
      read_unit(tokens, index, head, unit);
      add_groups(sequence, head, unit, plan);
      plan.query_origins.push_back(narrow(sequence.length));
    }
    sequence.length += tokens.tokens;
  }
  plan.num_keys = used_rows_;
  if (shape_.rules.repeats == RepeatRule::once) mark_repeats(plan);
  return plan;
}

void HeadCache::release(std::span<const std::int64_t> sequences) {
  if (shape_.memory) return;
  for (const std::int64_t number : sequences) {
    Sequence& sequence = at(number);
    if (shape_.rules.block > 0) {
      for (std::size_t place = 0; place < sequence.lists.size(); ++place) {
        List& list = sequence.lists[place];
        const std::int64_t next =
            shape_.rules.first_rank(static_cast<std::int64_t>(place) % shape_.rules.lists, sequence.length);
        // A shifted key joins one token late, so the list may end before.
        let_go(sequence, list, std::min(next, list.end_rank()));
      }
    } else if (shape_.horizon.segment > 0) {
      for (List& list : sequence.lists) let_go_of_unread(sequence, list);
    } else {
      // Where no key has joined, there is nothing to let go. There may be hundreds of lists.
      for (const std::int32_t list : sequence.touched) {
        let_go_of_unread(sequence, sequence.lists[static_cast<std::size_t>(list)]);
      }
    }
    sequence.touched.clear();
  }
}

void HeadCache::set_memory(std::int64_t sequence, std::int64_t tokens, const kernels::HeadRows<const float>& keys,
                           const kernels::HeadRows<const float>& values, std::span<const TokenLists> key_lists) {
  require<InputError>(shape_.memory, "cache: a memory was given, but these heads read their own sequence");
  Sequence& to = at(sequence);
  for (std::int64_t head = 0; head < shape_.heads; ++head) {
    const TokenLists& lists = key_lists[static_cast<std::size_t>(head)];
    const std::int32_t* next = lists.lists.data();
    for (std::int64_t token = 0; token < tokens; ++token) {
      std::int32_t count = lists.counts[static_cast<std::size_t>(token)];
      if (count == 0) continue;
      const std::int32_t row = take_row(to, row_of(keys, 0, head, token), row_of(values, 0, head, token));
      for (; count > 0; --count) {
        join(to.lists[static_cast<std::size_t>(head * shape_.rules.lists + *next++)], row, narrow(token));
      }
    }
  }
}

}  // namespace routing
