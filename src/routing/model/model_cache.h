// What a model keeps of the sequences that it reads piece by piece, layer by layer.
#pragma once

#include "routing/attention/cache/attention_cache.h"
#include "routing/attention/cache/piece_exchange.h"
#include "routing/ops/precision.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace routing {

// What one layer keeps.
struct BlockCache {
  AttentionCache self = {};
  std::optional<AttentionCache> cross = std::nullopt;  // of a decoder that reads a source
};

// What is wanted of a pass over new tokens.
struct CachedContext {
  MatmulPrecision precision = MatmulPrecision::fp32;
  bool last_only = false;
  // The tokens are a piece of one sequence whose other pieces are read elsewhere at the same time.
  PieceExchange* pieces = nullptr;
};

// Made by a model's make_cache() and used with that model only, as long as its weights stay as they are.
class ModelCache {
 public:
  // `weights` is the size of the model in numbers.
  ModelCache(std::vector<BlockCache> layers, std::int64_t weights) : layers_(std::move(layers)), weights_(weights) {}

  // A new sequence that has read nothing; its number.
  std::int64_t add_sequence();
  // Another sequence that has read what this one has. Both share it in memory.
  std::int64_t fork_sequence(std::int64_t sequence);
  void drop_sequence(std::int64_t sequence);
  // From now on it is only there to be forked, and counts in kept_bytes().
  void keep_sequence(std::int64_t sequence);
  // A new sequence's next token stands at this position: others read what is before, at the same time, and the first
  // pass over it must have CachedContext::pieces.
  void begin_at(std::int64_t sequence, std::int64_t position);

  // While it lives, several threads may read with the cache, each some of these sequences and at most so many tokens of
  // each.
  class Parts {
   public:
    Parts(ModelCache& cache, std::span<const std::int64_t> sequences, std::int64_t tokens);
    ~Parts();
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

   private:
    ModelCache* cache_;
  };

  // Positions read so far.
  std::int64_t length(std::int64_t sequence) const { return layers_.front().self.length(sequence); }
  // Makes room for so many more tokens of a sequence.
  void reserve(std::int64_t tokens);
  std::int64_t bytes() const;
  // What is held, rather than what there is room for, however many hold it (attention/cache/head_cache.h): by kept
  // sequences, by one, and by all of them in heads without a window.
  std::int64_t kept_bytes() const;
  std::int64_t bytes_of(std::int64_t sequence) const;
  std::int64_t bytes_for_good() const;
  // Bytes that a sequence takes as long as it lives, beside windows of bounded size: for each of its tokens, for each
  // token of its source, and in a fork for each token that it shares.
  std::int64_t bytes_per_token() const;
  std::int64_t bytes_per_source_token() const;
  std::int64_t bytes_per_forked_token() const;

  std::vector<BlockCache>& layers() { return layers_; }
  // Of some work on so many sequences, how many one thread takes for itself; all of them where threads do better to
  // share each product. A thread by itself reads all weights: as long as they come from caches that costs less than the
  // threads' waiting for each other in every layer; from memory they would come twice.
  std::int64_t sequences_of_part(std::int64_t sequences, MatmulPrecision precision, std::int64_t fewest) const;

 private:
  template <class Action>
  void for_each_attention(const Action& action);
  template <class Bytes>
  std::int64_t total_of(const Bytes& bytes) const;
  std::int64_t free_number();

  std::vector<BlockCache> layers_;
  std::int64_t weights_ = 0;
  std::vector<bool> taken_;
};

}  // namespace routing
