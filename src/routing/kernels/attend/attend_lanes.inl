// The queries of a block as lanes, its keys as tiles, and which of them count for which. Included after
// attend_vectors.inl.
// Legend: i a lane (query of the block), j a key of the tile.

// What the tiles of a block share about its lanes. Lanes without a query see nothing.
struct Lanes {
  std::int32_t from[kLanes];
  std::int32_t to[kLanes];
  std::int32_t self[kLanes];
  std::int32_t center[kLanes];  // what relative offsets count from: a position, or a place less one
  std::int32_t position[kLanes];  // true positions
  std::int64_t first_key = 0;  // all visible keys of the block lie between these ranks
  std::int64_t last_key = 0;
  std::int64_t all_see_from = 0;  // every lane sees all keys between these, if there are any
  std::int64_t all_see_to = 0;
  bool any_self = false;
  bool consecutive = true;  // centers grow by one from lane to lane
};

inline void read_lanes(const Block& block, Lanes& lanes) {
  lanes.first_key = INT32_MAX;
  lanes.all_see_to = block.num_queries == kLanes ? INT32_MAX : 0;
  for (std::int64_t i = 0; i < kLanes; ++i) {
    if (i >= block.num_queries) {
      lanes.from[i] = lanes.to[i] = 0;
      lanes.self[i] = -1;
      lanes.center[i] = lanes.center[i - 1] + 1;
      lanes.position[i] = 0;
      continue;
    }
    const QueryView& view = block.views[i];
    lanes.from[i] = view.key_from;
    lanes.to[i] = view.key_to;
    lanes.self[i] = view.self_rank;
    lanes.position[i] = block.query_positions[i] + block.query_origin;
    lanes.center[i] = block.relative_by_rank ? view.place - 1 : lanes.position[i];
    if (i > 0 && lanes.center[i] != lanes.center[i - 1] + 1) lanes.consecutive = false;
    if (view.self_rank >= 0) lanes.any_self = true;
    if (view.key_from > lanes.all_see_from) lanes.all_see_from = view.key_from;
    if (view.key_to < lanes.all_see_to) lanes.all_see_to = view.key_to;
    if (view.key_from < view.key_to) {
      if (view.key_from < lanes.first_key) lanes.first_key = view.key_from;
      if (view.key_to > lanes.last_key) lanes.last_key = view.key_to;
    }
  }
  if (lanes.first_key > lanes.last_key) lanes.first_key = lanes.last_key;
  // Some keys that nobody sees cost less than products of odd sizes.
  lanes.first_key -= lanes.first_key % kRows;
}

// The keys of one tile that the block may see.
struct Tile {
  std::int64_t first = 0;  // rank of key 0
  std::int64_t count = 0;
  const float* keys[kKeyTile];
  const float* values[kKeyTile];
  std::int32_t position[kKeyTile];
  std::int32_t row[kKeyTile];
  std::int32_t offset_base[kKeyTile];  // relative offset of lane i = this - center[i]
  std::int64_t start[kKeyTile];        // into the rows of a skewed table
};

inline void read_tile(const Block& block, const Lanes& lanes, std::int64_t tile_begin, Tile& tile) {
  const std::int64_t tile_end = tile_begin + kKeyTile;
  tile.first = tile_begin > lanes.first_key ? tile_begin : lanes.first_key;
  tile.count = (tile_end < lanes.last_key ? tile_end : lanes.last_key) - tile.first;
  const std::int64_t lowest = -block.max_relative;
  const std::int64_t highest = block.max_relative + kLanes - 1;
  for (std::int64_t j = 0; j < tile.count; ++j) {
    const std::int32_t position = block.key_positions[tile.first + j];
    tile.position[j] = position;
    const std::int64_t row = block.key_rows[tile.first + j];
    tile.row[j] = block.key_rows[tile.first + j];
    tile.keys[j] = block.k + row * block.k_stride;
    tile.values[j] = block.v + row * block.v_stride;
    prefetch_row(tile.keys[j], block.dim);
    prefetch_row(tile.values[j], block.value_dim);
    tile.offset_base[j] = block.relative_by_rank ? static_cast<std::int32_t>(tile.first + j) : position;
    std::int64_t offset = tile.offset_base[j] - lanes.center[0];
    offset = offset < lowest ? lowest : (offset > highest ? highest : offset);
    tile.start[j] = highest - offset;
  }
}

// Row of the relative tables for lane i and key j.
inline std::int64_t table_row(const Block& block, const Lanes& lanes, const Tile& tile, std::int64_t i,
                              std::int64_t j) {
  std::int64_t offset = std::int64_t{tile.offset_base[j]} - lanes.center[i];
  offset = offset < -block.max_relative ? -block.max_relative : offset;
  offset = offset > block.max_relative ? block.max_relative : offset;
  return offset + block.max_relative;
}

// Keys of the tile that lane i may see, as a range of j; it may hold the lane's own key.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
inline KeyRange keys_of_lane(const Lanes& lanes, const Tile& tile, std::int64_t i) {
  KeyRange range{lanes.from[i] - tile.first, lanes.to[i] - tile.first};
  if (range.begin < 0) range.begin = 0;
  if (range.end > tile.count) range.end = tile.count;
  return range;
}

// A bit for each key, counted from a multiple of kKeyTile, that lane i has seen in an earlier group.
inline std::uint64_t repeats_of_lane(const Block& block, const Lanes& lanes, std::int64_t tile_number, std::int64_t i) {
  const std::int64_t begin = tile_number * kKeyTile;
  // A block's keys are not all of every lane, which has words for its own tiles only.
  if (lanes.from[i] >= begin + kKeyTile || lanes.to[i] <= begin || lanes.from[i] >= lanes.to[i]) return 0;
  return block.repeats.in_tile(i, tile_number);
}

// s[j][i] = minus infinity where j counts in an earlier group of i.
inline void hide_repeats(const Block& block, const Lanes& lanes, const Tile& tile, float* s) {
  constexpr std::int64_t kBits = 32;
  std::int32_t words[kKeyTile / kBits][kLanes];
  std::uint64_t any = 0;
  for (std::int64_t i = 0; i < kLanes; ++i) {
    const std::uint64_t word = repeats_of_lane(block, lanes, tile.first / kKeyTile, i);
    words[0][i] = static_cast<std::int32_t>(word);
    words[1][i] = static_cast<std::int32_t>(word >> kBits);
    any |= word;
  }
  if (any == 0) return;
  const Vec hidden = splat(-__builtin_inff());
  for (std::int64_t j = 0; j < tile.count; ++j) {
    const std::int64_t place = (tile.first + j) % kKeyTile;
    if ((any >> place & 1U) == 0) continue;
    const Ints bit = splat(static_cast<std::int32_t>(std::uint32_t{1} << (place % kBits)));
    for (std::int64_t half = 0; half < kLanes; half += kWidth) {
      float* at = s + j * kLanes + half;
      store(at, (load(words[place / kBits] + half) & bit) == Ints{} ? load(at) : hidden);
    }
  }
}

// s[j][i] = minus infinity where j is outside of what i sees, or i itself and to be skipped.
inline void hide_unseen(const Lanes& lanes, const Tile& tile, float* s) {
  const Vec hidden = splat(-__builtin_inff());
  for (std::int64_t half = 0; half < kLanes; half += kWidth) {
    const Ints from = load(lanes.from + half);
    const Ints to = load(lanes.to + half);
    const Ints self = load(lanes.self + half);
    for (std::int64_t j = 0; j < tile.count; ++j) {
      const Ints rank = splat(static_cast<std::int32_t>(tile.first + j));
      const Ints visible = (rank >= from) & (rank < to) & (rank != self);
      float* at = s + j * kLanes + half;
      store(at, visible ? load(at) : hidden);
    }
  }
}
