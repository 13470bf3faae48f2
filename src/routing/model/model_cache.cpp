#include "routing/model/model_cache.h"

#include "routing/core/parallel.h"

#include <algorithm>

namespace routing {

template <class Action>
void ModelCache::for_each_attention(const Action& action) {
  for (BlockCache& layer : layers_) {
    action(layer.self);
    if (layer.cross) action(*layer.cross);
  }
}

template <class Bytes>
std::int64_t ModelCache::total_of(const Bytes& bytes) const {
  std::int64_t total = 0;
  for (const BlockCache& layer : layers_) total += bytes(layer.self) + (layer.cross ? bytes(*layer.cross) : 0);
  return total;
}

std::int64_t ModelCache::free_number() {
  const auto found = std::find(taken_.begin(), taken_.end(), false);
  const std::int64_t number = found - taken_.begin();
  if (found == taken_.end()) {
    taken_.push_back(true);
  } else {
    *found = true;
  }
  return number;
}

std::int64_t ModelCache::add_sequence() {
  const std::int64_t number = free_number();
  for_each_attention([&](AttentionCache& cache) { cache.add_sequence(number); });
  return number;
}

std::int64_t ModelCache::fork_sequence(std::int64_t sequence) {
  length(sequence);  // is it there? Nothing is taken otherwise
  const std::int64_t number = free_number();
  for_each_attention([&](AttentionCache& cache) { cache.fork_sequence(sequence, number); });
  return number;
}

void ModelCache::drop_sequence(std::int64_t sequence) {
  for_each_attention([&](AttentionCache& cache) { cache.drop_sequence(sequence); });
  taken_[static_cast<std::size_t>(sequence)] = false;
}

void ModelCache::keep_sequence(std::int64_t sequence) {
  for_each_attention([&](AttentionCache& cache) { cache.keep_sequence(sequence); });
}

void ModelCache::begin_at(std::int64_t sequence, std::int64_t position) {
  for_each_attention([&](AttentionCache& cache) { cache.begin_at(sequence, position); });
}

ModelCache::Parts::Parts(ModelCache& cache, std::span<const std::int64_t> sequences, std::int64_t tokens)
    : cache_(&cache) {
  try {
    cache.for_each_attention([&](AttentionCache& each) { each.begin_parts(sequences, tokens); });
  } catch (...) {
    // Nobody destroys what was not made, and some layers may have begun.
    cache.for_each_attention([](AttentionCache& each) { each.end_parts(); });
    throw;
  }
}

ModelCache::Parts::~Parts() {
  cache_->for_each_attention([](AttentionCache& each) { each.end_parts(); });
}

std::int64_t ModelCache::sequences_of_part(std::int64_t sequences, MatmulPrecision precision,
                                           std::int64_t fewest) const {
  constexpr std::int64_t kBytesOfWeights = std::int64_t{8} << 20U;
  const std::int64_t bytes = precision == MatmulPrecision::bf16 ? 2 : 4;
  if (weights_ * bytes > kBytesOfWeights) return sequences;
  const std::int64_t parts = std::clamp<std::int64_t>(sequences / fewest, 1, num_threads());
  return (sequences + parts - 1) / parts;
}

void ModelCache::reserve(std::int64_t tokens) {
  for (BlockCache& layer : layers_) layer.self.reserve(tokens);
}

std::int64_t ModelCache::bytes() const {
  return total_of([](const AttentionCache& cache) { return cache.bytes(); });
}

std::int64_t ModelCache::kept_bytes() const {
  return total_of([](const AttentionCache& cache) { return cache.kept_bytes(); });
}

std::int64_t ModelCache::bytes_of(std::int64_t sequence) const {
  return total_of([sequence](const AttentionCache& cache) { return cache.bytes_of(sequence); });
}

std::int64_t ModelCache::bytes_for_good() const {
  return total_of([](const AttentionCache& cache) { return cache.bytes_for_good(); });
}

std::int64_t ModelCache::bytes_per_token() const {
  std::int64_t total = 0;
  for (const BlockCache& layer : layers_) total += layer.self.bytes_per_token();
  return total;
}

std::int64_t ModelCache::bytes_per_source_token() const {
  std::int64_t total = 0;
  for (const BlockCache& layer : layers_) total += layer.cross ? layer.cross->bytes_per_token() : 0;
  return total;
}

std::int64_t ModelCache::bytes_per_forked_token() const {
  std::int64_t total = 0;
  for (const BlockCache& layer : layers_) total += layer.self.bytes_per_forked_token();
  return total;
}

}  // namespace routing
