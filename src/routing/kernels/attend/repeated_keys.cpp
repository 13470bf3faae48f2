#include "routing/kernels/attend/repeated_keys.h"

#include "routing/core/parallel.h"

#include <algorithm>

namespace routing::kernels {
namespace {

constexpr std::int64_t kTile = kAttendTile;
static_assert(kTile == 64, "a word has a bit for each key of a tile");

std::int64_t tiles_of(std::int64_t keys) {
  return (keys + kTile - 1) / kTile;
}

// Bits first … last - 1 of tile number `tile`, where bits count from tile 0.
std::uint64_t bits_between(std::int64_t first, std::int64_t last, std::int64_t tile) {
  const std::int64_t from = std::max<std::int64_t>(first - tile * kTile, 0);
  const std::int64_t to = std::min(last - tile * kTile, kTile);
  if (from >= to) return 0;
  return (~std::uint64_t{0} >> (kTile - to)) & (~std::uint64_t{0} << from);
}

// The first rank from `from` on, below `to`, whose key is at this position or later; `to` if there is none. By halves,
// without branches on positions: nobody could foretell them.
std::int64_t first_not_before(const std::int32_t* keys, std::int64_t from, std::int64_t to, std::int32_t position) {
  std::int64_t left = to - from;
  while (left > 0) {
    const std::int64_t half = (left + 1) / 2;
    from += keys[from + half - 1] < position ? half : 0;
    left -= half;
  }
  return from;
}

// Room for the words of all views but those of first groups, where nothing repeats.
void make_room(const AttendPlan& plan, std::span<const QueryView> views, RepeatWords& repeats) {
  repeats.first_word.assign(views.size(), RepeatedKeys::kNone);
  std::int64_t size = 0;
  for (std::int64_t row = 0; row < plan.batch * plan.heads * plan.num_queries; ++row) {
    for (std::int64_t member = plan.member_offsets[row] + 1; member < plan.member_offsets[row + 1]; ++member) {
      const std::int64_t entry = plan.view_offsets[plan.member_group[member]] + plan.member_rank[member];
      const QueryView& view = views[static_cast<std::size_t>(entry)];
      if (view.key_from >= view.key_to) continue;
      repeats.first_word[static_cast<std::size_t>(entry)] = size - view.key_from / kTile;
      size += tiles_of(view.key_to) - view.key_from / kTile;
    }
  }
  repeats.words.assign(static_cast<std::size_t>(size), 0);
}

// In which groups of a unit is each key so far? Rows of keys are numbers up to the plan's, few of which may be in the
// unit, so the table is kept and only what was written is cleared.
class KeyGroups {
 public:
  KeyGroups(const AttendPlan& plan, std::int64_t unit)
      : keys_(plan.key_rows == nullptr ? plan.key_order : plan.key_rows),
        groups_(plan.groups),
        first_group_(plan.unit_offsets[unit]),
        newest_(table_of_thread()) {
    const auto keys = static_cast<std::size_t>(plan.key_origin + plan.num_keys);
    if (newest_.size() < keys) newest_.resize(keys, kNobody);
  }
  ~KeyGroups() {
    for (const Entry& entry : entries_) newest_[static_cast<std::size_t>(entry.key)] = kNobody;
  }
  KeyGroups(const KeyGroups&) = delete;
  KeyGroups& operator=(const KeyGroups&) = delete;

  // All keys of the next group.
  void add(std::int64_t group) {
    for (std::int64_t place = groups_[group * 4 + 2]; place < groups_[group * 4 + 3]; ++place) {
      std::int32_t& before = newest_[static_cast<std::size_t>(keys_[place])];
      entries_.push_back({keys_[place], static_cast<std::int32_t>(group - first_group_), before});
      before = static_cast<std::int32_t>(entries_.size() - 1);
    }
  }

  // Calls visit(group in unit) for the groups that a place of the list of keys shares its key with.
  template <class Visit>
  void for_each(std::int64_t place, const Visit& visit) const {
    std::int32_t number = newest_[static_cast<std::size_t>(keys_[place])];
    while (number != kNobody) {
      const Entry& entry = entries_[static_cast<std::size_t>(number)];
      visit(entry.group);
      number = entry.before;
    }
  }

 private:
  static constexpr std::int32_t kNobody = -1;
  struct Entry {
    std::int32_t key, group, before;  // before: the entry of the same key in an earlier group
  };
  static std::vector<std::int32_t>& table_of_thread() {
    thread_local std::vector<std::int32_t> table;
    return table;
  }

  const std::int32_t* keys_;
  const std::int64_t* groups_;
  std::int64_t first_group_;
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-const-or-ref-data-members): lives inside one call, on one thread.
  std::vector<std::int32_t>& newest_;  // entry of each key
  std::vector<Entry> entries_;
};

// The keys that one group shares with each of the earlier ones, as bits by rank.
class SharedKeys {
 public:
  explicit SharedKeys(std::int64_t groups) : slots_(static_cast<std::size_t>(groups), kNone) {}

  void read(const AttendPlan& plan, std::int64_t group, const KeyGroups& earlier) {
    for (const std::int32_t met : met_) slots_[static_cast<std::size_t>(met)] = kNone;
    met_.clear();
    bits_.clear();
    const std::int64_t begin = plan.groups[group * 4 + 2];
    const std::int64_t end = plan.groups[group * 4 + 3];
    tiles_ = tiles_of(end - begin);
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t rank = place - begin;
      earlier.for_each(place, [&](std::int32_t met) {
        std::int32_t& slot = slots_[static_cast<std::size_t>(met)];
        if (slot == kNone) {
          slot = static_cast<std::int32_t>(met_.size());
          met_.push_back(met);
          bits_.resize(met_.size() * static_cast<std::size_t>(tiles_), 0);
        }
        bits_[static_cast<std::size_t>(slot * tiles_ + rank / kTile)] |= std::uint64_t{1} << (rank % kTile);
      });
    }
  }
  // A word for each tile; null if there is no such key.
  const std::uint64_t* with(std::int64_t group_in_unit) const {
    const std::int32_t slot = slots_[static_cast<std::size_t>(group_in_unit)];
    return slot == kNone ? nullptr : bits_.data() + slot * tiles_;
  }

 private:
  static constexpr std::int32_t kNone = -1;
  std::vector<std::int32_t> slots_;  // of the groups of the unit
  std::vector<std::int32_t> met_;
  std::vector<std::uint64_t> bits_;  // [slot][tile]
  std::int64_t tiles_ = 0;
};

// A group of a query that is not its first.
struct LaterGroup {
  std::int64_t row, group;
};

// The rank in the later view of the query's own key where the earlier view skips it and the later one does not, or -1:
// a token that is alone in one of its groups only.
std::int64_t own_rank(const QueryView& seen, const std::int32_t* seen_keys, const QueryView& view,
                      const std::int32_t* keys) {
  if (seen.self_rank < 0 || view.self_rank >= 0) return -1;
  const std::int32_t own = seen_keys[seen.self_rank];
  const std::int64_t rank = first_not_before(keys, view.key_from, view.key_to, own);
  return rank < view.key_to && keys[rank] == own ? rank : -1;
}

// Sets the bits of the keys that earlier views of the row show. `words` begin with the tile of the view's first key.
void mark_earlier(const AttendPlan& plan, const SharedKeys& shared, const LaterGroup& later, const QueryView& view,
                  std::uint64_t* words) {
  const std::int64_t first_group = plan.unit_offsets[later.row / plan.num_queries];
  const std::int64_t first_tile = view.key_from / kTile;
  const std::int32_t* keys = plan.key_order + plan.groups[later.group * 4 + 2];
  for (std::int64_t member = plan.member_offsets[later.row]; plan.member_group[member] < later.group; ++member) {
    const std::int64_t earlier = plan.member_group[member];
    const std::uint64_t* bits = shared.with(earlier - first_group);
    const QueryView& seen = plan.views[plan.view_offsets[earlier] + plan.member_rank[member]];
    if (bits == nullptr || seen.key_from >= seen.key_to) continue;
    const std::int32_t* seen_keys = plan.key_order + plan.groups[earlier * 4 + 2];
    const std::int64_t from = first_not_before(keys, view.key_from, view.key_to, seen_keys[seen.key_from]);
    // Where both end with the query's time, the earlier group has no key that only the later view shows.
    const bool end_together = seen.key_to >= seen.place && view.key_to <= view.place;
    const std::int64_t to =
        end_together ? view.key_to : first_not_before(keys, from, view.key_to, seen_keys[seen.key_to - 1] + 1);
    const std::int64_t own = own_rank(seen, seen_keys, view, keys);
    for (std::int64_t tile = from / kTile; tile < tiles_of(to); ++tile) {
      words[tile - first_tile] |= bits[tile] & bits_between(from, to, tile) & ~bits_between(own, own + 1, tile);
    }
  }
}

// Leaves words only where there is something to leave out, and views only where something is left.
void tidy(QueryView& view, std::int64_t& first_word, std::uint64_t* words) {
  std::uint64_t repeated = 0;
  std::uint64_t left = 0;
  for (std::int64_t tile = view.key_from / kTile; tile < tiles_of(view.key_to); ++tile, ++words) {
    std::uint64_t seen = bits_between(view.key_from, view.key_to, tile);
    if (view.self_rank >= 0) seen &= ~bits_between(view.self_rank, view.self_rank + 1, tile);
    *words &= seen;
    repeated |= *words;
    left |= seen & ~*words;
  }
  if (repeated != 0 && left != 0) return;
  first_word = RepeatedKeys::kNone;
  if (repeated == 0) return;
  view.key_to = view.key_from;
  view.self_rank = -1;
}

void mark_unit(const AttendPlan& plan, std::int64_t unit, std::span<QueryView> views, RepeatWords& repeats) {
  const std::int64_t first_group = plan.unit_offsets[unit];
  const std::int64_t last_group = plan.unit_offsets[unit + 1];
  KeyGroups earlier(plan, unit);
  SharedKeys shared(last_group - first_group);
  for (std::int64_t group = first_group; group < last_group; ++group) {
    const std::int64_t* range = plan.groups + group * 4;
    shared.read(plan, group, earlier);
    for (std::int64_t query = range[0]; query < range[1]; ++query) {
      const std::int64_t entry = plan.view_offsets[group] + query - range[0];
      std::int64_t& first_word = repeats.first_word[static_cast<std::size_t>(entry)];
      if (first_word == RepeatedKeys::kNone) continue;
      QueryView& view = views[static_cast<std::size_t>(entry)];
      std::uint64_t* words = repeats.words.data() + (first_word + view.key_from / kTile);
      mark_earlier(plan, shared, {unit * plan.num_queries + plan.query_order[query] - plan.query_origin, group}, view,
                   words);
      tidy(view, first_word, words);
    }
    earlier.add(group);
  }
}

}  // namespace

void mark_repeats(const AttendPlan& plan, std::span<QueryView> views, RepeatWords& repeats) {
  make_room(plan, views, repeats);
  if (repeats.words.empty()) {
    repeats.clear();
    return;
  }
  parallel_for(0, plan.batch * plan.heads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) mark_unit(plan, unit, views, repeats);
  });
}

}  // namespace routing::kernels
