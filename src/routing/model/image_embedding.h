// How a model of images reads values (docs/facts.md C5). Position i of the sequence is row i / (3 W), column i / 3 mod
// W and channel i mod 3 of an image of W columns; it reads the value v of the position before.
//
//   x_i = sqrt(width) (table[c][v] + rows[r][c] + columns[k][c])      r, k, c of position i, the one to be predicted
//
// Each channel has its own table of values. Position 0 reads a start symbol, a row of its own behind the three tables:
// the authors take value 0 of the red table, which is also black.
#pragma once

#include "routing/config/experiment.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

namespace routing {

// Values of a whole image: the length of its sequence.
std::int64_t image_values(const ModelConfig& model);
// Rows of the table: three times the values, and the start symbol.
std::int64_t image_table_rows(const ModelConfig& model);
// The table at its start: as three tables of values would, though it is one.
at::Tensor initial_image_table(const ModelConfig& model, std::uint64_t key, const at::TensorOptions& options);
// The id of the start symbol.
std::int64_t image_start_id(const ModelConfig& model);

// Ids of the rows that a sequence reads: values int64 [batch, n] of the first n positions of images -> int64 [batch,
// n]. An InputError for values outside 0 … vocab_size - 1 and sequences longer than an image.
at::Tensor image_table_ids(const ModelConfig& model, const at::Tensor& values);

struct ImagePositions {
  at::Tensor rows;     // [height x 3, width]: row r, channel c at 3 r + c
  at::Tensor columns;  // [width in pixels x 3, width]
};
// What is added to some positions: [positions, width].
at::Tensor image_positions(const ModelConfig& model, const ImagePositions& tables,
                           std::span<const std::int64_t> positions);

// The row that one position reads, where `before` is the value of the position before it. The same errors.
std::int64_t image_table_id(const ModelConfig& model, std::int64_t position, std::int64_t before);

}  // namespace routing
