// What a packed matrix holds, for dense_pack.cpp, which makes it, and dense.cpp, which multiplies with it.
#pragma once

#include "routing/kernels/dense/dense_primitives.h"
#include "routing/kernels/dense/dense_rows.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace routing::kernels {

// On an EPYC with AVX-512, blocks of 64 rows reach the rate of larger ones, and a panel of 256 columns stays in the
// second-level cache up to a depth of 1024 in float32.
inline constexpr std::int64_t kBlockRows = 64;
inline constexpr std::int64_t kPanelColumns = 256;

inline std::int64_t panel_width(std::int64_t columns, std::int64_t panel) {
  return std::min(kPanelColumns, columns - panel * kPanelColumns);
}

inline std::int64_t parts_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

// How to compute single rows of a product: with which loop, and in which order its panels add up. All panels but the
// last one are alike.
struct RowPlan {
  RowLoop loop = nullptr;
  bool bias = false;
  bool relu = false;
  SumOrder inner = {};
  SumOrder last = {};

  bool is_for(const RowPlan& other) const { return loop == other.loop && bias == other.bias && relu == other.relu; }
};

struct PackedMatrix::Contents {
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  DenseType type = DenseType::fp32;
  std::vector<dnnl::memory> panels;
  std::vector<RowWeights> row_weights;  // the same memory, as loops for single rows read it
  mutable std::mutex mutex;
  mutable std::vector<RowPlan> row_plans;  // what was asked for so far
};

// The matmul of a block of rows with a panel.
MatmulKey block_key(const PackedMatrix::Contents& matrix, std::int64_t panel, const DenseOptions& options);

}  // namespace routing::kernels
