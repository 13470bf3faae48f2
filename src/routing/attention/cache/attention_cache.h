// What one layer of attention keeps of its sequences: a HeadCache for each of its groups of heads.
#pragma once

#include "routing/attention/cache/head_cache.h"
#include "routing/ops/attend/attend_fused.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

// Made by MultiHeadAttention::make_cache and used with that layer only. Once the layer's weights change it is worth
// nothing.
class AttentionCache {
 public:
  // Sequences have the same numbers in all groups; see HeadCache.
  void add_sequence(std::int64_t sequence);
  void fork_sequence(std::int64_t from, std::int64_t to);
  void drop_sequence(std::int64_t sequence);
  void keep_sequence(std::int64_t sequence);
  void begin_at(std::int64_t sequence, std::int64_t position);
  // Until end_parts(), several threads may read with this cache, each some of these sequences and at most so many
  // tokens of each.
  void begin_parts(std::span<const std::int64_t> sequences, std::int64_t tokens);
  void end_parts();
  std::int64_t length(std::int64_t sequence) const { return groups_.front().heads.length(sequence); }
  // Makes room for so many more tokens of one sequence; only heads without a window need any.
  void reserve(std::int64_t tokens);
  std::int64_t bytes() const;
  // What is held, as in HeadCache: by kept sequences, and by one; and by all in heads without a window, for good.
  std::int64_t kept_bytes() const;
  std::int64_t bytes_of(std::int64_t sequence) const;
  std::int64_t bytes_for_good() const;
  // Bytes that one more token of a sequence takes for good: those of heads without a window, or of a memory's heads one
  // of its keys. And those that each token so far takes once more in a fork, which copies lists, not rows.
  std::int64_t bytes_per_token() const;
  std::int64_t bytes_per_forked_token() const;

  // What the last call of forward_cached read with a group of heads, unless it was read in parts: for viewers and
  // tests.
  const KeptPlan& last_plan(std::size_t group) const { return groups_.at(group).last_plan; }

 private:
  friend class MultiHeadAttentionImpl;
  struct Group {
    HeadCache heads;
    AttendOptions options;  // with tables that are contiguous and have no graph
    KeptTables tables = {};
    KeptPlan last_plan = {};
    // Shifted keys: by sequence, the queries [heads, dim] of its last token, which are the keys of the next. Empty
    // where there is none yet.
    std::vector<std::vector<float>> last_queries = {};
    // Likewise the lists [heads] that those queries chose by their content, which that key joins. Empty where they are
    // not known here: then they are chosen again.
    std::vector<std::vector<TokenLists>> last_lists = {};
    std::int64_t kept_queries = 0;  // numbers of those of kept sequences
    std::span<const float> queries_of(std::int64_t sequence) const;
    std::vector<float>& room_for_queries(std::int64_t sequence);
    std::span<const TokenLists> lists_of(std::int64_t sequence) const;
    std::vector<TokenLists>& room_for_lists(std::int64_t sequence);
  };
  std::vector<Group> groups_;
  bool in_parts_ = false;
};

}  // namespace routing
