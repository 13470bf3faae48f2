// Keys and values of heads whose lists go through all pieces of a sequence (routed heads, LSH), and the way back for
// their gradients. Of a list, the queries of piece t can read the last `lookback` of the keys that joined before it,
// and of these piece s sends those that are its own:
//
//   forward    all say how many keys joined each list in their piece, so that each knows what everyone needs; s tells
//              t > s the positions of the keys that t needs and the lists they are in, and sends their rows, each once
//   backward   t sends back what it has added to their gradients; s adds what comes, that of the last piece first
//
// A piece attends over its own rows and those that came. Lists keep their ranks but for whole tiles: before the first
// key that came stand up to 63 places that nobody reads. So every query sees the keys that it sees in the whole
// sequence, in the same tiles, and the forward pass has the bits of one process.
//
// The rows themselves travel while the caller computes something else: start_rows() returns at once, finish_rows()
// waits. The backward pass goes through both the other way round, so gradients travel behind whatever was computed in
// between.
//
// Bytes      told by each piece to each other: 4 per list; by s to t: 8 + 4 per head, row and membership, and of a row
//            the numbers of a key and a value, which go back as many
// Memory     of a head: what came, at most lists x lookback rows however long the sequence
#pragma once

#include "routing/attention/pieces/sequence_piece.h"
#include "routing/attention/plan/token_lists.h"
#include "routing/ops/attend/plan.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace routing {

// Do heads with these rules read a piece so? `by_content`: tokens choose their lists by what they hold. One list of all
// tokens is a window of neighbours, which nobody has to be told of; one cluster is not, since tokens may be outside.
bool reads_by_list(const ListRules& rules, bool by_content);

// Which rows come from each piece and go to it. A unit is a head of a sequence.
struct ListReading {
  struct Rows {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  SequencePiece piece = {};
  std::int64_t rows = 0;                           // of a unit: its own, then those that came, then one for nobody
  std::vector<std::vector<at::Tensor>> sent = {};  // [piece][unit]: int64, numbers of own tokens
  std::vector<std::vector<Rows>> received = {};    // [piece][unit]: where they stand
};

// The plan of a piece over the rows that it reads, and where these come from.
struct JoinedLists {
  Plan plan = {};
  std::shared_ptr<const ListReading> reading = {};
};

// `own` is the plan of the piece's tokens as a sequence of their own, with a group for every list of every unit.
// `first_keys`, one per unit or none: the lists that the key of the first token joins where that depends on the token
// before it (shifted keys). All pieces call in the same order.
JoinedLists join_lists(const Plan& own, const ListRules& rules, std::span<const TokenLists> first_keys,
                       const SequencePiece& piece);

// [batch, heads, tokens, dim]; numbers of one type.
struct KeyRows {
  at::Tensor keys = {}, values = {};
};

// Rows on their way, and later their gradients.
class RowTransfer;
struct StartedRows {
  KeyRows own = {};
  std::shared_ptr<RowTransfer> transfer = {};
};

// Own rows go to later pieces, those of earlier ones begin to come. Differentiable together with finish_rows(), to be
// called once for what this returns; all pieces call, and go back, in the same order.
StartedRows start_rows(const KeyRows& own, const std::shared_ptr<const ListReading>& reading);
// [batch, heads, reading.rows, dim], as the joined plan reads them.
KeyRows finish_rows(const StartedRows& started);

}  // namespace routing
