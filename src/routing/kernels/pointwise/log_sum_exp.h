// Log-sum-exps of rows whose columns come panel by panel, and the gradient of cross-entropy through them.
//
// Layout     logits [num_rows, columns], row-major, contiguous, float32
// Threads    spread over parallel_for; a row's result depends on its row and on how columns are cut into panels
#pragma once

#include <cstdint>

namespace routing::kernels {

// One panel of logits: columns first_column … first_column + columns - 1 of all.
struct LogitPanel {
  std::int64_t num_rows = 0;
  std::int64_t first_column = 0;
  std::int64_t columns = 0;
};

// What has been seen of each row: the sum of exp(logit - largest). Starts at -infinity and 0.
struct RunningSums {
  float* largest = nullptr;  // [num_rows]
  double* sum = nullptr;     // [num_rows]
};

// Adds a panel. Also writes picked[row] where the panel holds column target[row].
void add_panel(const float* logits, const LogitPanel& panel, const std::int64_t* targets, const RunningSums& sums,
               float* picked);

struct RowGradients {
  const std::int64_t* targets = nullptr;  // [num_rows], -1: no target
  const float* log_sum_exp = nullptr;     // [num_rows]
  const float* loss_gradient = nullptr;   // [num_rows]
};

// logits <- loss_gradient * (exp(logit - log_sum_exp) - [column is the target]); zero for rows without a target.
void logits_to_gradient(float* logits, const LogitPanel& panel, const RowGradients& rows);

}  // namespace routing::kernels
