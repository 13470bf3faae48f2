// Softmax attention over a plan, forward and backward, fused: scores never leave the cache.
//
// What is computed stands in routing/ops/attend/attend.h, what a plan means in routing/ops/attend/plan.h; here both are
// plain pointers. Rows are float32; with rules.bf16 the levels avx512_bf16 and amx round factors of products to
// bfloat16, the others do not.
//
// Bits         equal for any number of threads. A query's output depends on its own row, the keys it sees, their ranks
//              in the group and nothing else: neither on keys after its last one nor on how many queries follow. (A
//              value that is infinite or not a number also reaches neighbouring queries that do not see it.)
// Order        softmax runs online over tiles of keys that are aligned to absolute rank; inside a tile keys are summed
//              in order of rank. A token's groups are merged in their order. Gradients add group after group.
// Memory       some tiles of keys and a block of queries for each thread; one output row per membership of tokens that
//              have several groups; with relative tables one gradient table per unit and, with bf16, some [128][table
//              row] for each thread.
// Precision    sums in float32; the exponential is right to 2 units in the last place, with bf16 to 3. With bf16, q, k,
//              v, the relative tables, probabilities and gradients are rounded as factors; softmax and its statistics
//              are not. Recency is added in float32: the logit of a key is rounded like a number of the size of slope
//              times distance, which for a distance is the same at any position
// Threads      forward runs blocks of queries side by side; backward units (sequence, head), or groups where no two
//              groups share a token and there are no tables
// Level        chosen by active_isa()
#pragma once

#include "routing/config/attention_rules.h"
#include "routing/kernels/attend/query_view.h"
#include "routing/kernels/pointwise/head_rows.h"

#include <cstdint>
#include <memory>

namespace routing::kernels {

// The lists of a Plan and the views of view_plan, or those of a KeptPlan, under the same names.
struct AttendPlan {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t num_queries = 0;
  std::int64_t num_keys = 0;
  // Row r of q, of the output and of what belongs to them is that of position r + query_origin, row r of k and v that
  // of position r + key_origin, which is 0 beside key_rows.
  std::int64_t query_origin = 0;
  std::int64_t key_origin = 0;
  const std::int32_t* query_order = nullptr;
  const std::int32_t* key_order = nullptr;
  // Row key_rows[x] of k and v of the unit is that of key_order[x]; null means that rows follow positions. Then k is
  // not q.
  const std::int32_t* key_rows = nullptr;
  // Forward only, for keys that are kept from call to call, and not beside query_origin: query row r of unit u is at
  // position r + query_origins[u].
  const std::int32_t* query_origins = nullptr;  // [batch * heads]
  const std::int64_t* groups = nullptr;         // [groups, 4]
  const std::int64_t* unit_offsets = nullptr;   // [batch * heads + 1]
  const std::int64_t* member_offsets = nullptr;
  const std::int64_t* member_group = nullptr;
  const std::int32_t* member_rank = nullptr;
  const std::int64_t* view_offsets = nullptr;  // [groups + 1]
  const QueryView* views = nullptr;
  RepeatedKeys repeats = {};  // of the views
};

struct AttendRules;

// The relative tables of some rules as the level in force reads them. A call makes its own; who attends with the same
// tables again and again keeps one. It is worth nothing once tables, level or precision are others.
class PackedTables {
 public:
  struct Contents;
  explicit PackedTables(const AttendRules& rules);
  const Contents& contents() const { return *contents_; }

 private:
  std::shared_ptr<const Contents> contents_;
};

struct AttendRules {
  std::int64_t dim = 0;
  std::int64_t value_dim = 0;
  double scale = 1.0;
  Merge merge = Merge::lse;
  double merge_eps = 0.0;
  RelativePosition relative = RelativePosition::none;
  std::int64_t max_relative = 0;                     // tables have 2 * max_relative + 1 rows, contiguous
  const float* relative_key = nullptr;               // absent means zero
  const float* relative_value = nullptr;             // absent means zero
  const PackedTables* packed_tables = nullptr;       // of these rules, or null
  const float* recency_slopes = nullptr;             // [heads]: a logit gets slope * (key position - query position)
  double dropout = 0.0;                              // probability
  const std::uint64_t* dropout_unit_keys = nullptr;  // [batch * heads], needed if dropout > 0
  bool bf16 = false;                                 // factors of products may be rounded to bfloat16
};

struct AttendProblem {
  AttendPlan plan;
  AttendRules rules;
  HeadRows<const float> q, k, v;
  // In place of q, k and v: rows that were rounded before; k and v both or neither. Only with rules.bf16 where
  // attend_rounds_to_bfloat16(), and with the same bits in all results.
  HeadRows<const std::uint16_t> q_halves = {}, k_halves = {}, v_halves = {};
};

// Whether rules.bf16 makes the loops in force round q, k and v when they read them.
bool attend_rounds_to_bfloat16();

// Writes every row of output and of lse [batch, heads, queries] (contiguous).
void attend_forward(const AttendProblem& problem, const HeadRows<float>& output, float* lse);

struct AttendBackward {
  HeadRows<const float> output;     // of attend_forward
  const float* lse = nullptr;       // likewise
  HeadRows<const float> d_output;   // the gradient that comes in
  const float* d_lse = nullptr;     // [batch, heads, queries]
  HeadRows<float> dq, dk, dv;       // every row is written; dk may be dq where k is q, which then gets the sum
  float* d_relative_key = nullptr;  // added to, like the tables; null where the table is
  float* d_relative_value = nullptr;
};

void attend_backward(const AttendProblem& problem, const AttendBackward& call);

}  // namespace routing::kernels
