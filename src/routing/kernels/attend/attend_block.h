// Between the driver of fused attention and its loops, which are compiled once per instruction set.
//
// The unit of work is a block: up to `lanes` neighbouring queries of one group. In the loops for float32 it lies across
// vector registers, one query per lane, so that softmax statistics are vectors and nothing is ever summed across lanes;
// keys come one row after the other, and rows of tiles are written [key][lane]: "S[j][i]". In the loops for bfloat16
// (attend_bf16_*.inl) queries are rows of small matrix products.
#pragma once

#include "routing/kernels/attend/query_view.h"

#include <cstdint>

namespace routing::kernels {

// Keys per tile of the online softmax. Tiles of 64 and of 128 keys took the same time within noise, tiles of 32 some
// 15 % more (local and full attention, 4 x 4 heads of 32, 2048 tokens, AVX-512 on an AMD EPYC of 2023, one thread).
inline constexpr std::int64_t kKeyTile = kAttendTile;

// One relative table: the table itself, [2 * max + 1, dim], and what the level's pack_table made of it.
struct RelativeTable {
  const float* rows = nullptr;
  const float* packed = nullptr;
};

struct Block {
  std::int64_t dim = 0;
  std::int64_t value_dim = 0;
  float scale = 1.0F;
  // Of the block's unit: the row of a query at position p is base + p * stride, that of a key where key_rows says.
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  // Likewise in bfloat16, for loops in that; then the float32 ones of the same rows are null.
  const std::uint16_t* q_halves = nullptr;
  const std::uint16_t* k_halves = nullptr;
  const std::uint16_t* v_halves = nullptr;
  std::int64_t q_stride = 0;
  std::int64_t k_stride = 0;
  std::int64_t v_stride = 0;
  std::int64_t num_queries = 0;                   // at most `lanes`
  const std::int32_t* query_positions = nullptr;  // of the block
  const std::int32_t* key_positions = nullptr;    // of the group
  const std::int32_t* key_rows = nullptr;         // where the keys of the group stand in k and v
  std::int32_t query_origin = 0;                  // what positions of queries count from
  std::int64_t num_keys = 0;                      // of the group
  // The first keys of the block that the thread computes next, where its rows are the same memory: they may be asked
  // for ahead.
  const std::int32_t* next_key_rows = nullptr;
  std::int64_t num_next_keys = 0;
  const QueryView* views = nullptr;  // of the block
  RepeatedKeys repeats = {};         // of the same views
  // A run is some neighbouring blocks of one group that one thread computes in order, with the same scratch: what was
  // made of its keys may be kept from block to block. In the backward pass a run is a whole group.
  bool first_of_run = true;
  bool last_of_run = true;
  bool relative_by_rank = false;
  std::int64_t max_relative = 0;
  RelativeTable key_table;
  RelativeTable value_table;
  float slope = 0.0F;  // of recency, in the unit's head; 0 means none
  bool dropout = false;
  std::uint64_t dropout_key = 0;  // of the unit
  std::uint32_t group_in_unit = 0;
  std::uint32_t drop_below = 0;  // random words below this drop their probability
  float keep_factor = 1.0F;
};

// Where a block's results go: by position, or, for tokens of several groups, to the parts that are merged later.
struct BlockResult {
  float* output = nullptr;  // of the unit
  float* lse = nullptr;
  std::int64_t output_stride = 0;
  float output_factor = 1.0F;
  const std::uint8_t* in_parts = nullptr;  // by position: is the token in several groups? Null means none is
  float* part_output = nullptr;            // of the block, [query][value_dim]
  float* part_lse = nullptr;

  struct Row {
    float* output;
    float* lse;
    float factor;
  };
  // Inlined always: a copy compiled for one instruction set must not serve the others.
  [[gnu::always_inline]] Row row(std::int64_t query, std::int64_t position, std::int64_t value_dim) const {
    if (in_parts != nullptr && in_parts[position] != 0) {
      return {part_output + query * value_dim, part_lse + query, 1.0F};
    }
    return {output + position * output_stride, lse + position, output_factor};
  }
};

// Gradients of one unit, of queries by position, of keys by row. Memory that nobody cleared: the first to come writes a
// row, others add to it.
struct GradientRows {
  float* base = nullptr;
  std::int64_t stride = 0;
  std::uint8_t* written = nullptr;  // likewise
};

// Rows by position, all of the block's unit.
struct BlockGradient {
  const float* output = nullptr;
  const float* d_output = nullptr;
  std::int64_t output_stride = 0;
  std::int64_t d_output_stride = 0;
  const float* lse = nullptr;
  const float* d_lse = nullptr;
  const float* output_weight = nullptr;  // d_output is multiplied with it; null means 1
  bool own_softmax = false;              // the group has a softmax of its own, whose statistics are not in lse
  GradientRows dq, dk, dv;
  float* d_key_table = nullptr;  // [2 * max + 1, dim] of the unit
  float* d_value_table = nullptr;
};

// The loops of one level. Scratch and packed tables are aligned to 64 bytes; scratch_size and table_size count float32.
// max_relative is -1 for the scratch of blocks without tables.
struct AttendLoops {
  std::int64_t lanes = 0;
  std::int64_t (*scratch_size)(std::int64_t dim, std::int64_t value_dim, std::int64_t max_relative) = nullptr;
  std::int64_t (*table_size)(std::int64_t max_relative, std::int64_t dim) = nullptr;
  void (*pack_table)(const float* rows, std::int64_t max_relative, std::int64_t dim, float* packed) = nullptr;
  void (*forward)(const Block& block, const BlockResult& result, float* scratch) = nullptr;
  void (*backward)(const Block& block, const BlockGradient& gradient, float* scratch) = nullptr;
};

AttendLoops attend_loops_generic();
AttendLoops attend_loops_avx2();
AttendLoops attend_loops_avx512();
// These round the factors of products to bfloat16.
AttendLoops attend_loops_avx512_bf16();
AttendLoops attend_loops_amx();

}  // namespace routing::kernels
