// In which order does a block of rows add up, and does a loop for single rows give the same bits?
//
// oneDNN chooses by shape, post-operations, version and processor how to cut a sum. Nothing of that is promised, so it
// is measured: numbers whose sum tells where a chain of additions ends give a guess; then the loop has to repeat the
// bits of the block on random numbers. Where it does not, there is no order, and callers have to run the block.
#pragma once

#include "routing/kernels/dense/dense_primitives.h"
#include "routing/kernels/dense/dense_rows.h"

namespace routing::kernels {

// The panel as the loops read it; without values if its layout is none that they know.
RowWeights row_weights(const dnnl::memory& panel);

// The loop for matmuls of the type at active_isa(), or null if the level has none.
RowLoop row_loop(DenseType type);

// The order with which the loop repeats the block of this key (its right factor packed, no accumulation), or an unknown
// one. Takes milliseconds.
SumOrder find_sum_order(const MatmulKey& key, RowLoop loop);

// The same, found once for each key and loop and kept; any thread may ask.
SumOrder sum_order_for(const MatmulKey& key, RowLoop loop);

}  // namespace routing::kernels
