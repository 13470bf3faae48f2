#include "routing/attention/patterns/shifted_keys.h"

#include "routing/core/error.h"

#include <algorithm>
#include <map>
#include <utility>

namespace routing {
namespace {

// Lists of keys that are moved by one, each once however many heads share it.
class KeyMover {
 public:
  KeyMover(const Plan& plan, const TokenLayout& layout)
      : positions_(plan.key_order.data_ptr<std::int32_t>()), layout_(layout) {}

  // The range that stands for [begin, end) of a sequence's keys.
  std::pair<std::int64_t, std::int64_t> move(std::size_t sequence, std::int64_t begin, std::int64_t end) {
    if (sequence != sequence_) {
      ranges_.clear();
      sequence_ = sequence;
    }
    const auto [place, is_new] = ranges_.try_emplace({begin, end});
    if (is_new) place->second = append(layout_.valid_keys[sequence], begin, end);
    return place->second;
  }
  const std::vector<std::int32_t>& order() const { return order_; }

 private:
  std::pair<std::int64_t, std::int64_t> append(const std::vector<std::int32_t>& valid, std::int64_t begin,
                                               std::int64_t end) {
    const auto first = static_cast<std::int64_t>(order_.size());
    // Without padding only the last token has no successor, and it is the last of its list.
    const bool whole = !valid.empty() && valid.back() + 1 == static_cast<std::int32_t>(valid.size());
    if (whole) {
      if (end > begin && positions_[end - 1] == valid.back()) --end;
      order_.resize(order_.size() + static_cast<std::size_t>(end - begin));
      std::transform(positions_ + begin, positions_ + end, order_.begin() + first,
                     [](std::int32_t position) { return position + 1; });
      return {first, static_cast<std::int64_t>(order_.size())};
    }
    auto from = valid.begin();
    for (std::int64_t key = begin; key < end; ++key) {
      const std::int32_t next = positions_[key] + 1;
      from = std::lower_bound(from, valid.end(), next);
      if (from != valid.end() && *from == next) order_.push_back(next);
    }
    return {first, static_cast<std::int64_t>(order_.size())};
  }

  const std::int32_t* positions_;
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-const-or-ref-data-members): lives inside one call.
  const TokenLayout& layout_;
  std::size_t sequence_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::int64_t, std::int64_t>> ranges_;
  std::vector<std::int32_t> order_;
};

}  // namespace

Plan with_shifted_keys(const Plan& plan, const TokenLayout& layout) {
  Plan shifted = plan;
  KeyMover keys(plan, layout);
  shifted.groups = plan.groups.clone();
  auto* group = shifted.groups.data_ptr<std::int64_t>();
  const auto* unit_groups = plan.unit_offsets.data_ptr<std::int64_t>();
  for (std::int64_t unit = 0; unit < plan.num_units(); ++unit) {
    const auto sequence = static_cast<std::size_t>(unit / plan.heads);
    for (std::int64_t number = unit_groups[unit]; number < unit_groups[unit + 1]; ++number, group += 4) {
      std::tie(group[2], group[3]) = keys.move(sequence, group[2], group[3]);
    }
  }
  shifted.key_order = at::empty({static_cast<std::int64_t>(keys.order().size())}, at::kInt);
  std::copy(keys.order().begin(), keys.order().end(), shifted.key_order.data_ptr<std::int32_t>());
  return complete_plan(std::move(shifted));
}

std::vector<TokenLists> shifted_lists(std::span<const TokenLists> before, std::span<const TokenLists> lists,
                                      std::span<const std::int64_t> first_positions) {
  require<InputError>(
      before.size() == lists.size() && !first_positions.empty() && lists.size() % first_positions.size() == 0,
      "shifted keys: lists of ", lists.size(), " units behind ", before.size(), " of ", first_positions.size(),
      " sequences");
  const std::size_t heads = lists.size() / first_positions.size();
  std::vector<TokenLists> all(lists.size());
  for (std::size_t unit = 0; unit < lists.size(); ++unit) {
    TokenLists& keys = all[unit];
    const bool begins = first_positions[unit / heads] == 0;
    keys.counts.push_back(begins ? 0 : before[unit].counts.at(0));
    if (!begins) keys.lists = before[unit].lists;
    keys.counts.insert(keys.counts.end(), lists[unit].counts.begin(), lists[unit].counts.end() - 1);
    keys.lists.insert(keys.lists.end(), lists[unit].lists.begin(), lists[unit].lists.end() - lists[unit].counts.back());
  }
  return all;
}

}  // namespace routing
