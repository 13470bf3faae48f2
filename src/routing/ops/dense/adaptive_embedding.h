// Looking up words whose vectors are as wide as their band of the vocabulary deserves (Baevski & Auli 2019).
//
//   e(w) = P_b t_b[w - first word of b]       b the band of w, t_b its table, P_b its projection to the common width
//
// A band's projection reads the words of that band alone, in the order of their positions: the vector of a word depends
// on no other word, bit for bit, and gradients of tables and projections are summed in the order of positions, whatever
// the number of threads.
#pragma once

#include "routing/ops/precision.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace routing {

struct EmbeddingBand {
  std::int64_t words = 0;      // ids go on from band to band
  at::Tensor table = {};       // [at least `words`, width of the band]
  at::Tensor projection = {};  // [width, width of the band]; undefined where a band is as wide as the result
};

struct BandedTable {
  std::vector<EmbeddingBand> bands = {};
  // The row of the first band's table that the id after the last word reads, a start symbol's; -1 means that there is
  // no such id.
  std::int64_t extra_row = -1;
};

// ids int64 of any shape -> [..., width], float or double. Differentiable once in tables and projections; a band that
// no id is of has gradients of zeros. An id that is of no band is an InputError.
at::Tensor adaptive_embedding(const at::Tensor& ids, const BandedTable& table, MatmulPrecision precision);

}  // namespace routing
