#include "routing/generation/prefix_cache.h"

#include "routing/core/error.h"

#include <algorithm>
#include <utility>

namespace routing {

PrefixCache::PrefixCache(Decoder& decoder, const PrefixCacheLimits& limits) : decoder_(&decoder), limits_(limits) {
  require<ConfigError>(limits.bytes >= 0 && limits.least_tokens >= 0, "prefix cache: bytes is ", limits.bytes,
                       " and least_tokens ", limits.least_tokens, ", but both must be 0 or more");
}

PrefixCache::~PrefixCache() {
  for (const auto& [entry, snapshot] : snapshots_) decoder_->drop(snapshot.sequence);
}

PrefixCache::Found PrefixCache::find(std::span<const std::int32_t> prompt) const {
  const PrefixTree::Match match = tree_.match(prompt);
  if (match.entry == PrefixTree::kNone) return {};
  const Snapshot& snapshot = snapshots_.at(match.entry);
  const bool whole = match.tokens == static_cast<std::int64_t>(prompt.size());
  if (!whole && decoder_->prompt_block() == 0) return {};
  return {.sequence = snapshot.sequence, .tokens = match.tokens, .logits = snapshot.logits};
}

void PrefixCache::count(std::span<const std::int32_t> prompt, const Found& found) {
  if (limits_.bytes == 0) return;
  if (found.sequence < 0) {
    ++counts_.misses;
    return;
  }
  ++counts_.hits;
  counts_.tokens_saved += found.tokens;
  const Snapshot& used = snapshots_.at(tree_.match(prompt).entry);
  uses_.splice(uses_.begin(), uses_, used.use);
}

std::vector<std::int64_t> PrefixCache::places(std::span<const std::int32_t> prompt) const {
  const auto all = static_cast<std::int64_t>(prompt.size());
  std::vector<std::int64_t> places{all};
  const std::int64_t block = decoder_->prompt_block();
  if (limits_.bytes == 0 || block == 0) return places;
  // A first block holds the start beside its tokens.
  for (std::int64_t length = block; length - 1 < all; length *= 2) {
    if (is_worth(length - 1)) places.push_back(length - 1);
  }
  const std::int64_t shared = tree_.match(prompt).shared;
  if (is_worth(shared)) places.push_back(shared);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// Beside rows and tokens: logits, and what the maps hold of it.
std::int64_t PrefixCache::bytes_of_entry() const {
  constexpr std::int64_t kOfMaps = sizeof(Snapshot) + 12 * sizeof(void*);
  return kOfMaps + decoder_->vocabulary_size() * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t PrefixCache::bytes() const {
  return decoder_->kept_bytes() + tree_.bytes() + static_cast<std::int64_t>(snapshots_.size()) * bytes_of_entry();
}

void PrefixCache::insert(std::span<const std::int32_t> tokens, std::int64_t sequence,
                         const std::shared_ptr<const std::vector<float>>& logits) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  if (!is_worth(length)) return;
  if (const PrefixTree::Match match = tree_.match(tokens); match.entry != PrefixTree::kNone && match.tokens == length) {
    uses_.splice(uses_.begin(), uses_, snapshots_.at(match.entry).use);
    return;
  }
  // One that is too large even alone would drive out all others, and then itself.
  const std::int64_t alone = decoder_->bytes_of(sequence) + bytes_of_entry() + PrefixTree::kBytesPerEntry +
                             length * static_cast<std::int64_t>(sizeof(std::int32_t));
  if (alone > limits_.bytes) return;
  if (!decoder_->has_room(sequence, {})) return;
  const std::int64_t kept = decoder_->keep(sequence);
  const PrefixTree::Entry entry = tree_.insert(tokens);
  uses_.push_front(entry);
  snapshots_[entry] = {.sequence = kept, .tokens = length, .logits = logits, .use = uses_.begin()};
  ++counts_.insertions;
  while (bytes() > limits_.bytes) evict();
}

bool PrefixCache::evict() {
  if (uses_.empty()) return false;
  const PrefixTree::Entry entry = uses_.back();
  decoder_->drop(snapshots_.at(entry).sequence);
  uses_.pop_back();
  snapshots_.erase(entry);
  tree_.erase(entry);
  ++counts_.evictions;
  return true;
}

PrefixCache::Facts PrefixCache::facts() const {
  Facts facts = counts_;
  facts.snapshots = static_cast<std::int64_t>(snapshots_.size());
  facts.bytes = snapshots_.empty() ? 0 : bytes();
  return facts;
}

}  // namespace routing
