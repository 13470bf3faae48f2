// Rows of the pieces before one's own, and the way back for their gradients: what attention over a piece of a sequence
// needs to be trained (sequence_piece.h), by heads that go by position. Those whose lists go by content read less
// (list_rows.h).
//
//   forward    piece s sends piece t > s those of its rows that t's queries can read
//   backward   t sends back what it has added to their gradients; s adds what comes, that of the last piece first
//
// The patterns make their plans over all positions up to the end of the piece, of which only those of the piece are
// queries (plan/remembered_tokens.h). So every query sees the keys that it sees in the whole sequence, at the same
// ranks, and the forward pass has the bits of one process. Gradients are sums in another order; that order is fixed.
//
// Order      message (s, t) waits only for messages with a smaller s + t on the way forward, and with a larger one on
//            the way back, so nobody waits in a circle
// Bytes      each way, of a head and two pieces: rows of s from the first that t reads x numbers of a key and a value
#pragma once

#include "routing/attention/pieces/sequence_piece.h"
#include "routing/attention/plan/token_lists.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace routing {

// The first position of which a piece that begins at `begin` has rows: before the first that its queries can read, by
// the window where there is one list of all keys, by the block, otherwise 0; and so far before it that lists may lose
// whole tiles (with_rows_from). With shifted keys (`key_shift` 1) rows are those of the token before.
std::int64_t first_position_read(const ListRules& rules, std::int64_t key_shift, std::int64_t begin);
// Of all pieces.
std::vector<std::int64_t> first_positions_read(const ListRules& rules, std::int64_t key_shift,
                                               const SequencePiece& piece);

// rows [batch, heads, tokens, dim] of this piece -> [batch, heads, end of the piece - first, dim]: those from `first`,
// firsts[this piece], on. Differentiable; all pieces call, and go back, in the same order.
at::Tensor with_earlier_rows(const at::Tensor& rows, const std::vector<std::int64_t>& firsts,
                             const SequencePiece& piece);

}  // namespace routing
