// One block of fused attention in bfloat16: what its queries see, and its memory. Included after attend_bf16_pack.inl.
//
// A block is up to four strips of 32 queries. Tiles of 64 keys are gathered and packed once, stay for the next blocks of
// the run and meet every strip that sees one of their keys. S is written [query][key]. Softmax is taken to base 2: scores are multiplied with log2(e).
// Which tiles, strips and columns are computed never shows in a query's bits: everything beyond what it sees adds zero.

constexpr std::int64_t kStrips = 4;
constexpr std::int64_t kQueries = kStrips * kStep;
constexpr float kLog2E = 1.44269504F;
constexpr float kLn2 = 0.693147181F;

struct Strip {
  std::int64_t begin = 0;      // first query
  std::int64_t rows = 0;       // of products: its queries, rounded up to 16; of one query forward, 1
  std::int64_t first_key = 0;  // all visible keys lie between these ranks
  std::int64_t last_key = 0;
  std::int64_t all_see_from = 0;  // every row sees all keys between these, if there are any
  std::int64_t all_see_to = 0;
  bool any_gap = false;  // a row skips a key inside of what it sees: its own, or one that counts in an earlier group
};

// What the tiles of a block share about its queries. Rows without a query see nothing.
struct Queries {
  std::int32_t from[kQueries];
  std::int32_t to[kQueries];
  std::int32_t self[kQueries];
  std::int32_t position[kQueries];  // true positions
  std::int32_t center[kQueries];    // what relative offsets count from: a position, or a place less one
  Strip strips[kStrips];
  std::int64_t num_strips = 0;
  std::int64_t first_key = 0;
  std::int64_t last_key = 0;
  // Rows of the relative tables that visible pairs need, in multiples of kStep.
  std::int64_t table_from = 0;
  std::int64_t table_to = 0;
};

inline std::int64_t table_row(const Block& block, std::int64_t offset) {
  if (offset < -block.max_relative) return 0;
  if (offset > block.max_relative) return 2 * block.max_relative;
  return offset + block.max_relative;
}

inline std::int32_t key_base(const Block& block, std::int64_t rank) {
  return block.relative_by_rank ? static_cast<std::int32_t>(rank) : block.key_positions[rank];
}

inline void read_query(const Block& block, std::int64_t i, Strip& strip, Queries& queries) {
  const QueryView& view = block.views[i];
  queries.from[i] = view.key_from;
  queries.to[i] = view.key_to;
  queries.self[i] = view.self_rank;
  queries.position[i] = block.query_positions[i] + block.query_origin;
  queries.center[i] = block.relative_by_rank ? view.place - 1 : queries.position[i];
  const bool repeats = block.repeats.first_word != nullptr && block.repeats.first_word[i] != RepeatedKeys::kNone;
  strip.any_gap = strip.any_gap || view.self_rank >= 0 || repeats;
  if (view.key_from > strip.all_see_from) strip.all_see_from = view.key_from;
  if (view.key_to < strip.all_see_to) strip.all_see_to = view.key_to;
  if (view.key_from >= view.key_to) return;
  if (view.key_from < strip.first_key) strip.first_key = view.key_from;
  if (view.key_to > strip.last_key) strip.last_key = view.key_to;
  const std::int64_t lowest = table_row(block, std::int64_t{key_base(block, view.key_from)} - queries.center[i]);
  const std::int64_t highest = table_row(block, std::int64_t{key_base(block, view.key_to - 1)} - queries.center[i]);
  if (lowest < queries.table_from) queries.table_from = lowest;
  if (highest >= queries.table_to) queries.table_to = highest + 1;
}

// `one_row`: products may have a single row, where there is a single query.
inline void read_queries(const Block& block, bool one_row, Queries& queries) {
  queries.first_key = queries.table_from = INT32_MAX;
  queries.num_strips = (block.num_queries + kStep - 1) / kStep;
  for (std::int64_t s = 0; s < queries.num_strips; ++s) {
    Strip& strip = queries.strips[s];
    strip.begin = s * kStep;
    const std::int64_t count = block.num_queries - strip.begin < kStep ? block.num_queries - strip.begin : kStep;
    strip.rows = one_row && block.num_queries == 1 ? 1 : round_up(count, kVector);
    strip.first_key = INT32_MAX;
    strip.all_see_to = count == kStep ? INT32_MAX : 0;  // rows without a query never see anything
    for (std::int64_t i = strip.begin; i < strip.begin + kStep; ++i) {
      if (i < block.num_queries) {
        read_query(block, i, strip, queries);
      } else {
        queries.from[i] = queries.to[i] = queries.position[i] = queries.center[i] = 0;
        queries.self[i] = -1;
      }
    }
    if (strip.first_key < queries.first_key) queries.first_key = strip.first_key;
    if (strip.last_key > queries.last_key) queries.last_key = strip.last_key;
  }
  if (queries.first_key > queries.last_key) queries.first_key = queries.last_key;
  if (queries.table_from > queries.table_to) queries.table_from = queries.table_to;
  queries.table_from -= queries.table_from % kStep;
  queries.table_to = round_up(queries.table_to, kStep);
}

// The keys of one tile: ranks begin … begin + count - 1 of the group.
struct Tile {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  alignas(64) std::int32_t position[kKeyTile];
  alignas(64) std::int32_t base[kKeyTile];  // relative offset of query i = this - center[i]
  bool in_order[kKeyTile / kVector];        // the bases of the 16 keys grow by one
};

inline void read_tile(const Block& block, std::int64_t begin, Tile& tile) {
  tile.begin = begin;
  tile.count = block.num_keys - begin < kKeyTile ? block.num_keys - begin : kKeyTile;
  for (std::int64_t j = 0; j < kKeyTile; j += kVector) {
    const __mmask16 exist = first_lanes(tile.count - j);
    const __m512i position = _mm512_maskz_loadu_epi32(exist, block.key_positions + begin + j);
    const __m512i rank = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(begin + j)),
                                          _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
    _mm512_store_si512(tile.position + j, position);
    _mm512_store_si512(tile.base + j, block.relative_by_rank ? rank : position);
    tile.in_order[j / kVector] =
        j + kVector <= tile.count && tile.base[j + kVector - 1] - tile.base[j] == kVector - 1;
  }
}

// The columns of the tile that one strip computes: scores in vectors, sums over keys in steps.
struct Columns {
  std::int64_t from = 0, to = 0;            // multiples of kVector
  std::int64_t step_from = 0, step_to = 0;  // multiples of kStep around them
  bool all_visible = false;
};

inline Columns columns_of(const Strip& strip, const Tile& tile) {
  Columns columns;
  const std::int64_t first = strip.first_key > tile.begin ? strip.first_key - tile.begin : 0;
  const std::int64_t last = strip.last_key - tile.begin < kKeyTile ? strip.last_key - tile.begin : kKeyTile;
  if (first >= last) return columns;
  columns.from = first - first % kVector;
  columns.to = round_up(last, kVector);
  columns.step_from = first - first % kStep;
  columns.step_to = round_up(last, kStep);
  columns.all_visible = !strip.any_gap && tile.begin + columns.step_from >= strip.all_see_from &&
                        tile.begin + columns.step_to <= strip.all_see_to;
  return columns;
}

// A bit for every key of the tile that counts for query i.
inline std::uint64_t visible_keys(const Block& block, const Queries& queries, const Tile& tile, std::int64_t i) {
  const std::int64_t from = queries.from[i] > tile.begin ? queries.from[i] - tile.begin : 0;
  const std::int64_t to = queries.to[i] - tile.begin < kKeyTile ? queries.to[i] - tile.begin : kKeyTile;
  if (from >= to) return 0;
  std::uint64_t bits = (~std::uint64_t{0} >> (kKeyTile - to)) & (~std::uint64_t{0} << from);
  const std::int64_t self = queries.self[i] - tile.begin;
  if (queries.self[i] >= 0 && self >= 0 && self < kKeyTile) bits &= ~(std::uint64_t{1} << self);
  return bits & ~block.repeats.in_tile(i, tile.begin / kKeyTile);
}

// 2^x to about 3 units in the last place; 0 far below, also for minus infinity; exactly 1 at 0; not a number stays so.
inline __m512 exp2_of(__m512 x) {
  const __m512 kept = _mm512_max_ps(_mm512_set1_ps(-1000.0F), x);
  const __m512 n = _mm512_roundscale_ps(kept, 0);
  const __m512 r = _mm512_sub_ps(kept, n);
  __m512 p = _mm512_set1_ps(1.54035304e-4F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.33335581e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.61812911e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.55041087e-2F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.40226507e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.93147181e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, n);
}

// The product of a constant and every lane, as low and high words.
inline void multiply_words(__m512i x, std::uint32_t factor, __m512i& low, __m512i& high) {
  constexpr __mmask16 kOdd = 0xAAAA;
  const __m512i by = _mm512_set1_epi32(static_cast<int>(factor));
  const __m512i even = _mm512_mul_epu32(x, by);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), by);
  low = _mm512_mask_blend_epi32(kOdd, even, _mm512_slli_epi64(odd, 32));
  high = _mm512_mask_blend_epi32(kOdd, _mm512_srli_epi64(even, 32), odd);
}

// Which of 16 keys dropout keeps for a query. The counter of the draw is (key position, query position, group in unit,
// 0), as in routing/ops/attend/attention_dropout.h.
inline __mmask16 kept_keys(const Block& block, std::int64_t i, const std::int32_t* key_positions) {
  __m512i word0 = _mm512_loadu_si512(key_positions);
  __m512i word1 = _mm512_set1_epi32(block.query_positions[i]);
  __m512i word2 = _mm512_set1_epi32(static_cast<int>(block.group_in_unit));
  __m512i word3 = _mm512_setzero_si512();
  auto key0 = static_cast<std::uint32_t>(block.dropout_key);
  auto key1 = static_cast<std::uint32_t>(block.dropout_key >> 32U);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    __m512i low0, high0, low1, high1;
    multiply_words(word0, kPhiloxMultiplier0, low0, high0);
    multiply_words(word2, kPhiloxMultiplier1, low1, high1);
    word0 = _mm512_xor_si512(_mm512_xor_si512(high1, word1), _mm512_set1_epi32(static_cast<int>(key0)));
    word1 = low1;
    word2 = _mm512_xor_si512(_mm512_xor_si512(high0, word3), _mm512_set1_epi32(static_cast<int>(key1)));
    word3 = low0;
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return _mm512_cmpge_epu32_mask(word0, _mm512_set1_epi32(static_cast<int>(block.drop_below)));
}
inline std::uint64_t kept_in_tile(const Block& block, const Tile& tile, const Columns& columns, std::int64_t i) {
  std::uint64_t bits = 0;
  for (std::int64_t j = columns.step_from; j < columns.step_to; j += kVector) {
    bits |= std::uint64_t{kept_keys(block, i, tile.position + j)} << j;
  }
  return bits;
}

// Which tiles are packed: one that begins at rank b has place b / kKeyTile % kPlaces.
constexpr std::int64_t kPlaces = 8;
struct TileRing {
  std::int64_t begin[kPlaces];  // -1 for an empty place
  void clear() {
    for (std::int64_t& tile : begin) tile = -1;
  }
};
inline std::int64_t place_of(std::int64_t tile_begin) {
  return tile_begin / kKeyTile % kPlaces;
}

// Memory of a block, carved out of the scratch. Padded: dim and value_dim are rounded up to kStep, table rows too.
struct Memory {
  Half* q_rows;         // [query][dim]
  Half* k_rows;         // [key][dim]
  Half* v_rows;         // [key][value_dim]
  TileRing* ring;
  Pair* k_columns;      // [place in the ring][dim / 2][key]
  Pair* v_pairs;        // [place in the ring][key / 2][value_dim]
  float* o;             // [query][value_dim], not yet divided by the sum
  float* total;         // [query][16] parts of the sum
  float* largest;       // [query]
  float* s;             // [query of a strip][key]
  Half* p;              // [query of a strip][key]
  float* key_scores;    // [query][table row]: q . a
  float* weight_sums;   // [query][table row]: probabilities by offset
  Half* sums_rounded;   // [query of a strip][table row]
  // Backward only.
  Pair* q_pairs;        // [query / 2][dim]
  Half* d_rows;         // [query][value_dim] of d_output
  Pair* d_pairs;        // [query / 2][value_dim]
  Pair* k_pairs;        // [place in the ring][key / 2][dim]
  Pair* v_columns;      // [place in the ring][value_dim / 2][key]
  float* dk;            // [place in the ring][key][dim]
  float* dv;            // [place in the ring][key][value_dim]
  float* dp;            // [query of a strip][key]
  Half* ds;             // [query of a strip][key]
  Half* p_transposed;   // [key][query]
  Half* ds_transposed;  // [key][query]
  float* dq;            // [query][dim]
  float* products;      // [table row][dim or value_dim]
  float* value_scores;  // [query][table row]: d_output . b
  float* ds_sums;       // [query][table row]
  Half* sums_by_row;    // [table row][query]
};

// Hands out pieces of the scratch, each on a cache line of its own.
struct Carver {
  float* scratch = nullptr;
  std::int64_t used = 0;
  template <class Number>
  void take(Number*& piece, std::int64_t count) {
    constexpr std::int64_t kLine = 16;
    if (scratch != nullptr) piece = reinterpret_cast<Number*>(scratch + used);
    used += round_up(count * static_cast<std::int64_t>(sizeof(Number)), kLine * 4) / 4;
  }
};

inline std::int64_t carve(std::int64_t dim, std::int64_t value_dim, std::int64_t max_relative, float* scratch,
                          Memory& memory) {
  const std::int64_t d = round_up(dim, kStep);
  const std::int64_t e = round_up(value_dim, kStep);
  const std::int64_t table = max_relative < 0 ? 0 : round_up(2 * max_relative + 1, kStep);
  const std::int64_t larger = d > e ? d : e;
  Carver carver{scratch};
  carver.take(memory.ring, 1);
  carver.take(memory.q_rows, kQueries * d);
  carver.take(memory.k_rows, kKeyTile * d);
  carver.take(memory.v_rows, kKeyTile * e);
  carver.take(memory.k_columns, kPlaces * kKeyTile * d / 2);
  carver.take(memory.v_pairs, kPlaces * kKeyTile / 2 * e);
  carver.take(memory.o, kQueries * e);
  carver.take(memory.total, kQueries * kVector);
  carver.take(memory.largest, kQueries);
  carver.take(memory.s, kStep * kKeyTile);
  carver.take(memory.p, kStep * kKeyTile);
  carver.take(memory.key_scores, kQueries * table);
  carver.take(memory.weight_sums, kQueries * table);
  carver.take(memory.sums_rounded, kStep * table);
  carver.take(memory.q_pairs, kQueries / 2 * d);
  carver.take(memory.d_rows, kQueries * e);
  carver.take(memory.d_pairs, kQueries / 2 * e);
  carver.take(memory.k_pairs, kPlaces * kKeyTile / 2 * d);
  carver.take(memory.v_columns, kPlaces * kKeyTile * e / 2);
  carver.take(memory.dk, kPlaces * kKeyTile * d);
  carver.take(memory.dv, kPlaces * kKeyTile * e);
  carver.take(memory.dp, kStep * kKeyTile);
  carver.take(memory.ds, kStep * kKeyTile);
  carver.take(memory.p_transposed, kKeyTile * kQueries);
  carver.take(memory.ds_transposed, kKeyTile * kQueries);
  carver.take(memory.dq, kQueries * d);
  carver.take(memory.products, table * larger);
  carver.take(memory.value_scores, kQueries * table);
  carver.take(memory.ds_sums, kQueries * table);
  carver.take(memory.sums_by_row, kQueries * table);
  return carver.used;
}

inline std::int64_t scratch_size(std::int64_t dim, std::int64_t value_dim, std::int64_t max_relative) {
  Memory memory;
  return carve(dim, value_dim, max_relative, nullptr, memory);
}
