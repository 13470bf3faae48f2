#include "routing/attention/cache/attention_cache.h"

namespace routing {
namespace {

bool keeps_everything(const HeadCacheShape& shape) {
  return shape.rules.block == 0 && !shape.rules.lookback && shape.horizon.segment == 0;
}

// What is left of what all keys would take where only some of them join the list.
std::int64_t of_joining(const HeadCacheShape& shape, std::int64_t of_all) {
  if (shape.rules.period_keys.empty()) return of_all;
  return (of_all * shape.rules.period_keys.front() + shape.rules.period - 1) / shape.rules.period;
}

std::int64_t bytes_of_floats(std::size_t count) {
  return static_cast<std::int64_t>(count * sizeof(float));
}

}  // namespace

std::span<const float> AttentionCache::Group::queries_of(std::int64_t sequence) const {
  const auto index = static_cast<std::size_t>(sequence);
  return index < last_queries.size() ? std::span<const float>(last_queries[index]) : std::span<const float>();
}

std::vector<float>& AttentionCache::Group::room_for_queries(std::int64_t sequence) {
  const auto index = static_cast<std::size_t>(sequence);
  if (index >= last_queries.size()) last_queries.resize(index + 1);
  return last_queries[index];
}

std::span<const TokenLists> AttentionCache::Group::lists_of(std::int64_t sequence) const {
  const auto index = static_cast<std::size_t>(sequence);
  return index < last_lists.size() ? std::span<const TokenLists>(last_lists[index]) : std::span<const TokenLists>();
}

std::vector<TokenLists>& AttentionCache::Group::room_for_lists(std::int64_t sequence) {
  const auto index = static_cast<std::size_t>(sequence);
  if (index >= last_lists.size()) last_lists.resize(index + 1);
  return last_lists[index];
}

void AttentionCache::add_sequence(std::int64_t sequence) {
  for (Group& group : groups_) group.heads.add_sequence(sequence);
}

void AttentionCache::fork_sequence(std::int64_t from, std::int64_t to) {
  for (Group& group : groups_) {
    group.heads.fork_sequence(from, to);
    const std::span<const float> last = group.queries_of(from);
    if (!last.empty()) group.room_for_queries(to) = std::vector<float>(last.begin(), last.end());
    const std::span<const TokenLists> lists = group.lists_of(from);
    if (!lists.empty()) group.room_for_lists(to) = std::vector<TokenLists>(lists.begin(), lists.end());
  }
}

void AttentionCache::drop_sequence(std::int64_t sequence) {
  for (Group& group : groups_) {
    const std::span<const float> last = group.queries_of(sequence);
    if (group.heads.is_kept(sequence)) group.kept_queries -= static_cast<std::int64_t>(last.size());
    group.heads.drop_sequence(sequence);
    if (!last.empty()) group.room_for_queries(sequence) = {};
    if (!group.lists_of(sequence).empty()) group.room_for_lists(sequence) = {};
  }
}

void AttentionCache::keep_sequence(std::int64_t sequence) {
  for (Group& group : groups_) {
    if (group.heads.is_kept(sequence)) continue;
    group.heads.keep_sequence(sequence);
    group.kept_queries += static_cast<std::int64_t>(group.queries_of(sequence).size());
  }
}

void AttentionCache::begin_at(std::int64_t sequence, std::int64_t position) {
  for (Group& group : groups_) group.heads.begin_at(sequence, position);
}

void AttentionCache::begin_parts(std::span<const std::int64_t> sequences, std::int64_t tokens) {
  for (Group& group : groups_) {
    group.heads.begin_parts(sequences, tokens);
    group.last_plan = {};
    if (group.heads.shape().key_shift == 0) continue;
    for (const std::int64_t sequence : sequences) {
      group.room_for_queries(sequence);
      group.room_for_lists(sequence);
    }
  }
  in_parts_ = true;
}

void AttentionCache::end_parts() {
  for (Group& group : groups_) group.heads.end_parts();
  in_parts_ = false;
}

void AttentionCache::reserve(std::int64_t tokens) {
  for (Group& group : groups_) {
    const HeadCacheShape& shape = group.heads.shape();
    if (!shape.memory && keeps_everything(shape)) group.heads.reserve(of_joining(shape, tokens * shape.heads));
  }
}

std::int64_t AttentionCache::bytes() const {
  std::int64_t total = 0;
  for (const Group& group : groups_) {
    total += group.heads.bytes();
    for (const std::vector<float>& queries : group.last_queries) total += bytes_of_floats(queries.size());
  }
  return total;
}

std::int64_t AttentionCache::kept_bytes() const {
  std::int64_t total = 0;
  for (const Group& group : groups_) {
    total += group.heads.kept_bytes() + group.kept_queries * std::int64_t{sizeof(float)};
  }
  return total;
}

std::int64_t AttentionCache::bytes_of(std::int64_t sequence) const {
  std::int64_t total = 0;
  for (const Group& group : groups_) {
    total += group.heads.bytes_of(sequence) + bytes_of_floats(group.queries_of(sequence).size());
  }
  return total;
}

std::int64_t AttentionCache::bytes_for_good() const {
  std::int64_t total = 0;
  for (const Group& group : groups_) {
    if (keeps_everything(group.heads.shape())) total += group.heads.bytes_in_use();
  }
  return total;
}

std::int64_t AttentionCache::bytes_per_token() const {
  std::int64_t total = bytes_per_forked_token();
  for (const Group& group : groups_) {
    const HeadCacheShape& shape = group.heads.shape();
    if (!keeps_everything(shape)) continue;
    total += of_joining(shape, shape.heads * group.heads.bytes_per_row());
  }
  return total;
}

std::int64_t AttentionCache::bytes_per_forked_token() const {
  std::int64_t total = 0;
  for (const Group& group : groups_) {
    const HeadCacheShape& shape = group.heads.shape();
    if (!keeps_everything(shape)) continue;
    total += of_joining(shape, shape.heads * HeadCache::kBytesPerPlace);
  }
  return total;
}

}  // namespace routing
