// The keys and values that a group of heads keeps, so that new tokens attend as if their whole sequence had been read
// at once: the same keys at the same ranks in tiles of the same alignment, so the same bits (kernels/attend/attend.h).
//
// Rows of keys and values stand in one store. Lists (token_lists.h) hold numbers of rows; a row lives as long as a list
// of any sequence holds it. So a token that joins several lists is kept once, heads with a window keep a bounded number
// of rows, and a fork of a sequence shares all it has read so far.
//
// Memory     rows in use, in float32 or bfloat16; grows by half when full. Windows: at most lists x lookback rows per
// sequence and
//            head; blocks: block + before rows; with a horizon at most those of a memory and a segment; without any all
//            keys that joined a list
// Threads    one caller at a time; between begin_parts() and end_parts() several, each with sequences of its own
#pragma once

#include "routing/attention/cache/row_store.h"
#include "routing/attention/plan/token_lists.h"
#include "routing/config/attention_rules.h"
#include "routing/kernels/attend/query_view.h"
#include "routing/kernels/pointwise/head_rows.h"
#include "routing/ops/attend/kept_plan.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace routing {

struct HeadCacheShape {
  std::int64_t heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  ListRules rules = {};
  SelfRule self = SelfRule::allowed;
  bool memory = false;  // cross-attention: keys are those of a memory and known before any query
  Horizon horizon = {};
  std::int64_t key_shift = 0;  // shifted keys: the first token that is remembered has no key
  bool halves = false;         // rows are kept in bfloat16, for attention that reads them so
};

class HeadCache {
 public:
  explicit HeadCache(const HeadCacheShape& shape);

  // Sequences have numbers that the caller gives. A new one is empty; a fork has read what the other has.
  void add_sequence(std::int64_t sequence);
  void fork_sequence(std::int64_t from, std::int64_t to);
  void drop_sequence(std::int64_t sequence);
  // A sequence that reads no more: it is there to be forked, until it is dropped.
  void keep_sequence(std::int64_t sequence);
  bool is_kept(std::int64_t sequence) const { return at(sequence).kept; }
  // Positions read so far. A memory does not count.
  std::int64_t length(std::int64_t sequence) const;

  // Some next tokens of some sequences, equally many of each; no sequence twice.
  struct NewTokens {
    std::span<const std::int64_t> sequences = {};
    std::int64_t tokens = 0;
    kernels::HeadRows<const float> keys = {},
                                   values = {};  // [sequences, heads, tokens, dim]; none of them with a memory
    // [sequences * heads], or [sequences] where all heads of a sequence have the same.
    std::span<const TokenLists> query_lists = {};
    std::span<const TokenLists> key_lists = {};  // likewise; empty where they are those of the queries
  };
  // Takes the keys, and says what the queries read. Before the next call, release() must follow. A plan that nobody
  // needs any more may be handed over for its memory.
  KeptPlan append(const NewTokens& tokens, KeptPlan discarded = {});
  // Lets go of the keys that no later query of these sequences can read.
  void release(std::span<const std::int64_t> sequences);

  // Until end_parts(), several threads may append() and release(), each some of these sequences and at most so many
  // tokens of each. Rows that they will need are set aside for each of them, so that none has to move.
  void begin_parts(std::span<const std::int64_t> sequences, std::int64_t tokens);
  void end_parts() { in_parts_ = false; }

  // What a sequence reads in cross-attention: keys and values [1, heads, tokens, dim], and the lists that keys joined.
  void set_memory(std::int64_t sequence, std::int64_t tokens, const kernels::HeadRows<const float>& keys,
                  const kernels::HeadRows<const float>& values, std::span<const TokenLists> key_lists);

  // A sequence whose beginning others have read (sequence_pieces.h). It must be new; its next token stands at this
  // position, and before that come skip_ranks() and the keys that it can still read with join_past().
  void begin_at(std::int64_t sequence, std::int64_t position);
  // How many keys of each list, [heads * lists], stand before those that will join.
  void skip_ranks(std::int64_t sequence, std::span<const std::int64_t> ranks);
  // Keys of one head that joined its lists before `position`, piece after piece.
  struct PastKeys {
    std::int64_t head = 0;
    std::span<const std::int32_t> rows = {};     // [rows, 1 + key_dim + value_dim]: position, then the bits of floats
    std::vector<std::int64_t> counts = {};       // [lists]: keys that join each list
    std::span<const std::int32_t> members = {};  // their rows, list after list, in the order of time
  };
  void join_past(std::int64_t sequence, const PastKeys& past);

  const HeadCacheShape& shape() const { return shape_; }
  // The plan says which of its rows count.
  const RowStore& store() const { return store_; }

  // Makes room for so many more rows at once.
  void reserve(std::int64_t rows);
  // Hands back the room of rows that nobody holds, if it is more than a quarter of all: after a long piece. Plans made
  // before are worth nothing then.
  void compact();
  std::int64_t rows_in_use() const;
  std::int64_t bytes() const { return store_.bytes(); }
  // What sequences hold, rather than what there is room for: rows, each counted once, and their places in lists. Of all
  // sequences; of those that are kept; of one, whoever else holds its rows.
  std::int64_t bytes_in_use() const;
  std::int64_t kept_bytes() const { return rows_kept_ * bytes_per_row() + kept_places_ * kBytesPerPlace; }
  std::int64_t bytes_of(std::int64_t sequence) const;
  std::int64_t bytes_per_row() const;
  // A row and a position, in a list and in the plan of the last call.
  static constexpr std::int64_t kBytesPerPlace = 4 * std::int64_t{sizeof(std::int32_t)};

 private:
  // Keys of ranks dropped … dropped + size - 1 of a list.
  struct List {
    std::vector<std::int32_t> rows, positions;
    std::int64_t first = 0;    // places before this one are empty
    std::int64_t dropped = 0;  // the rank that place `first` has
    // Segments with a memory: the rank of the first key that queries of this segment may read, and those of the
    // segments to come whose first key is known already.
    std::int64_t origin = 0;
    std::vector<std::int64_t> next_origins = {};
    std::int64_t end_rank() const { return dropped + static_cast<std::int64_t>(rows.size()) - first; }
    std::int64_t size() const { return static_cast<std::int64_t>(rows.size()) - first; }
    std::size_t place(std::int64_t rank) const { return static_cast<std::size_t>(first + rank - dropped); }
  };
  struct Sequence {
    bool exists = false;
    bool lacks_past = false;  // begun at a position, but nobody has told what stands before
    bool kept = false;
    std::int64_t length = 0;
    std::vector<List> lists;            // [heads, lists]
    std::vector<std::int32_t> touched;  // those that a key has joined since release()
    std::vector<std::int32_t> spare;    // free rows that are set aside for it
  };
  struct UnitQueries;  // what is known of a unit's queries while a plan is made

  // Positions are int32.
  static constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max() - kernels::kAttendTile;

  Sequence& at(std::int64_t sequence);
  const Sequence& at(std::int64_t sequence) const;
  // May they all read so many more tokens?
  void check_sequences(std::span<const std::int64_t> sequences, std::int64_t tokens) const;
  static std::int64_t places_of(const Sequence& sequence);
  template <class Action>
  static void for_each_place(const Sequence& sequence, const Action& action);
  std::int32_t free_row();
  std::int32_t take_row(Sequence& sequence, const float* key, const float* value);
  void join(List& list, std::int32_t row, std::int32_t position);
  void let_go(Sequence& sequence, List& list, std::int64_t rank);
  void let_go_of_unread(Sequence& sequence, List& list);
  // Moves the horizon of a head's lists on, before the key of this position joins.
  void reach(List* lists, std::int64_t position) const;
  void read_unit(const NewTokens& tokens, std::size_t index, std::int64_t head, UnitQueries& unit);
  void add_groups(const Sequence& sequence, std::int64_t head, UnitQueries& unit, KeptPlan& plan) const;
  static void add_members(UnitQueries& unit, KeptPlan& plan);

  HeadCacheShape shape_;
  RowStore store_;
  std::vector<std::uint32_t> holders_;
  std::vector<std::int32_t> free_rows_;
  std::int64_t used_rows_ = 0;  // rows that were ever taken
  bool in_parts_ = false;
  std::vector<Sequence> sequences_;
  std::vector<std::uint32_t> keepers_;  // kept sequences' places that hold a row; rows beyond its end have none
  std::int64_t rows_kept_ = 0, kept_places_ = 0;
};

template <class Action>
void HeadCache::for_each_place(const Sequence& sequence, const Action& action) {
  for (const List& list : sequence.lists) {
    for (auto place = static_cast<std::size_t>(list.first); place < list.rows.size(); ++place) {
      action(static_cast<std::size_t>(list.rows[place]));
    }
  }
}

}  // namespace routing
