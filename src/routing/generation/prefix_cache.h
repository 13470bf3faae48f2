// Prompts that begin alike are read once.
//
// The cache keeps snapshots: sequences that have read a prompt or the beginning of one, with the logits that follow. A
// request that begins with the same tokens goes on from a fork of the longest of them. Heads with windows let go of
// keys as they read on, so a snapshot serves at its own length only, and it matters where they are taken:
//
//   at the end of a prompt       for the same prompt again, which then reads nothing, and for what continues it
//   where two prompts part       the length that a new prompt shares with one that is kept
//   after 1, 2, 4, 8, … blocks   so that of what a prompt shares with another one about half at least is known at once
//
// Where a prompt is read as a whole (Decoder::prompt_block() is 0) only the first kind is of any use.
//
// Bits do not depend on it: a fork of a sequence gives what reading the same tokens again would.
//
// Work       looking up takes time in proportion to the prompt, however many snapshots there are (prefix_tree.h)
// Memory     PrefixCacheLimits::bytes holds for the rows of keys and values that snapshots hold, each counted once
//            however many share it, their lists, logits and tokens. The one that was not used for the longest time goes
//            first
// Threads    one caller at a time
#pragma once

#include "routing/generation/decoder.h"
#include "routing/generation/prefix_tree.h"

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace routing {

struct PrefixCacheLimits {
  std::int64_t bytes = std::int64_t{256} << 20U;  // 0: nothing is kept
  std::int64_t least_tokens = 16;                 // shorter beginnings are not worth a snapshot
};

class PrefixCache {
 public:
  // The decoder must outlive it, and nobody else may keep sequences of it. Throws a ConfigError for limits below 0.
  PrefixCache(Decoder& decoder, const PrefixCacheLimits& limits);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  struct Found {
    std::int64_t sequence = -1;  // to be forked before the next call; -1 if nothing was found
    std::int64_t tokens = 0;     // that it has read
    std::shared_ptr<const std::vector<float>> logits = {};  // of the token after them
  };
  // The longest snapshot that the prompt begins with. Changes nothing.
  Found find(std::span<const std::int32_t> prompt) const;
  // A prompt goes on from what find() has found: it counts as used now, or as missed.
  void count(std::span<const std::int32_t> prompt, const Found& found);
  // The lengths, ascending, at which reading this prompt should stop for a snapshot to be taken; the last is all of it.
  std::vector<std::int64_t> places(std::span<const std::int32_t> prompt) const;
  // Keeps a snapshot of a sequence that has read these tokens, unless it is there already, too short, or larger than
  // everything that may be kept. Others go to make room.
  void insert(std::span<const std::int32_t> tokens, std::int64_t sequence,
              const std::shared_ptr<const std::vector<float>>& logits);
  // Lets the snapshot go that was not used for the longest time; false if there is none.
  bool evict();

  // Is a beginning of so many tokens worth a snapshot?
  bool is_worth(std::int64_t tokens) const { return limits_.bytes > 0 && tokens >= limits_.least_tokens; }

  struct Facts {
    std::int64_t hits = 0, misses = 0;  // prompts that began with a snapshot, and those that did not
    std::int64_t tokens_saved = 0;      // that did not have to be read
    std::int64_t insertions = 0, evictions = 0;
    std::int64_t snapshots = 0, bytes = 0;  // now
  };
  Facts facts() const;

 private:
  struct Snapshot {
    std::int64_t sequence = -1;
    std::int64_t tokens = 0;
    std::shared_ptr<const std::vector<float>> logits = {};
    std::list<PrefixTree::Entry>::iterator use = {};
  };
  std::int64_t bytes() const;
  std::int64_t bytes_of_entry() const;

  Decoder* decoder_;
  PrefixCacheLimits limits_;
  PrefixTree tree_;
  std::unordered_map<PrefixTree::Entry, Snapshot> snapshots_;
  std::list<PrefixTree::Entry> uses_;  // the last used first
  Facts counts_ = {};
};

}  // namespace routing
