// One sequence in pieces that are read at the same time: what attention over a piece needs of the pieces before it.
//
// The lists of a head (token_lists.h) go through all pieces. Of a list, the queries of piece t can read
//
//   the last `lookback` of the keys that joined before t      windows of local, LSH and routed heads
//   the keys from before the block of its first token         block-local heads, windows of two dimensions
//   all keys before t                                         heads without a window
//
// and of these, piece s sends to t those that are its own: by cluster, for routed heads. A key that several lists want
// is sent once. So a piece that has taken the keys before it holds the very lists that a reader of everything before
// would hold, at the same ranks, and its queries give the same bits.
//
// Order      first all say how many keys joined each list in their piece (so each knows what everyone needs); then a
//            piece takes what comes from piece 0, 1, … and then sends to the next, the one after, …: message (s, t)
//            waits for messages with a smaller s + t only
// Bytes      gather: 4 (2 + lists of all heads); message: 4 per head, 4 per membership,
//            4 (1 + key_dim + value_dim) per row
// Memory     one message at a time
#pragma once

#include "routing/attention/cache/head_cache.h"
#include "routing/attention/cache/piece_exchange.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

namespace routing {

// The keys of a piece for one group of heads, and the cache that takes those before them.
struct PieceKeys {
  HeadCache* cache = nullptr;
  at::Tensor keys = {}, values = {};           // [1, heads, tokens, dim], rows of adjacent numbers
  std::span<const TokenLists> key_lists = {};  // [heads]
};

// Fills the caches of a layer's groups with the keys before the piece. Each of them has this sequence at the piece's
// first position, with nothing in it (HeadCache::begin_at). Called for all pieces; throws the same InputError for all
// of them if they do not stand one after the other.
void take_keys_before(PieceExchange& exchange, std::int64_t sequence, std::span<const PieceKeys> groups);

}  // namespace routing
