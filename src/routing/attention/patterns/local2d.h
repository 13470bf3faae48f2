// Local attention in two dimensions (Image Transformer, Parmar et al. 2018), for images in raster order.
//
// Position i is a value of pixel i / 3 (red, green and blue of a pixel follow each other), which stands in row
// i / 3 / image_width and column i / 3 % image_width. The image is cut into blocks of rows x columns pixels; those at
// its right and lower border are smaller. A group is a block of queries; its keys are the rectangle around it. With
// r0 and c0 the first row and column of the block of query i,
//
//   S_i = {j <= i : r0 - above <= row(j) and c0 - beside <= column(j) < c0 + columns + beside}
//
// so a pixel reads what has been read of its own block, and the flange left of it, above it and right of it. Not
// causal, the rectangle reaches `above` rows below the block too and j may come after i.
//
// The authors generate block after block; here images are read in raster order (docs/facts.md C5), so the columns right
// of a block are known in every row above the query's own, and nothing right of the query in its own row.
//
// Read piece by piece, the columns of a rectangle are a strip of the image. A head keeps one list of keys for each of
// the blocks of a row, `ceil(image_width / columns)`: a key joins every list whose strip holds it, a query reads the
// list of its own block from row r0 - above on. Keys of rows before that are let go.
#pragma once

#include "routing/attention/plan/token_layout.h"
#include "routing/attention/plan/token_lists.h"
#include "routing/config/attention.h"
#include "routing/ops/attend/plan.h"

#include <cstdint>

namespace routing {

inline constexpr std::int64_t kPixelTokens = 3;  // red, green and blue

// One group for each block, in raster order of blocks; any length from 0, padding left out.
Plan local2d_plan(const TokenLayout& layout, const Local2dPattern& pattern, bool causal, SelfRule self);

// How causal heads read piece by piece.
ListRules local2d_list_rules(const Local2dPattern& pattern);
// The lists that the queries of `tokens` tokens from position `first` on read, and those that their keys join.
TokenLists local2d_query_lists(const Local2dPattern& pattern, std::int64_t first, std::int64_t tokens);
TokenLists local2d_key_lists(const Local2dPattern& pattern, std::int64_t first, std::int64_t tokens);

}  // namespace routing
