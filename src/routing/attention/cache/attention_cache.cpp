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

}  // namespace

void AttentionCache::add_sequence(std::int64_t sequence) {
  for (Group& group : groups_) group.heads.add_sequence(sequence);
}

void AttentionCache::fork_sequence(std::int64_t from, std::int64_t to) {
  for (Group& group : groups_) {
    group.heads.fork_sequence(from, to);
    if (const auto last = group.last_queries.find(from); last != group.last_queries.end()) {
      group.last_queries[to] = last->second;
    }
  }
}

void AttentionCache::drop_sequence(std::int64_t sequence) {
  for (Group& group : groups_) {
    group.heads.drop_sequence(sequence);
    group.last_queries.erase(sequence);
  }
}

void AttentionCache::keep_sequence(std::int64_t sequence) {
  for (Group& group : groups_) {
    group.heads.keep_sequence(sequence);
    // Alone, not as a row among those that the last step read.
    const auto last = group.last_queries.find(sequence);
    if (last != group.last_queries.end()) last->second = last->second.clone();
  }
}

void AttentionCache::begin_at(std::int64_t sequence, std::int64_t position) {
  for (Group& group : groups_) group.heads.begin_at(sequence, position);
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
    for (const auto& [sequence, queries] : group.last_queries) total += static_cast<std::int64_t>(queries.nbytes());
  }
  return total;
}

std::int64_t AttentionCache::kept_bytes() const {
  std::int64_t total = 0;
  for (const Group& group : groups_) {
    total += group.heads.kept_bytes();
    for (const auto& [sequence, queries] : group.last_queries) {
      if (group.heads.is_kept(sequence)) total += static_cast<std::int64_t>(queries.nbytes());
    }
  }
  return total;
}

std::int64_t AttentionCache::bytes_of(std::int64_t sequence) const {
  std::int64_t total = 0;
  for (const Group& group : groups_) {
    total += group.heads.bytes_of(sequence);
    const auto last = group.last_queries.find(sequence);
    if (last != group.last_queries.end()) total += static_cast<std::int64_t>(last->second.nbytes());
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
