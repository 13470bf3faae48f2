// What tells the tokens of a text their place, added to their vectors x of the model's width d (model.positions):
//
//   none         x
//   learned      x + row t of a table of `longest` rows
//   factored     x + row t / s of one table + row t mod s of another, s = model.position_stride: the cell of s tokens
//                and the place in it (Child et al. 2019, attention embeddings with n_emb = 2)
//   sinusoidal   sqrt(d) x + p(t),  p(t)[2i] = sin(t / 10000^(2i/d)),  p(t)[2i + 1] = cos(t / 10000^(2i/d))
//                as Vaswani et al.; the factor makes tokens as large as sinusoids, which are not small
//
// Images have rows and columns instead (image_embedding.h).
#pragma once

#include "routing/attention/patterns/pattern.h"
#include "routing/config/experiment.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <span>
#include <string>

namespace routing {

// Rows of some places, or of places 0 … length - 1: [places, width] in the type and on the device of the options.
at::Tensor sinusoids(std::span<const std::int64_t> places, std::int64_t width, const at::TensorOptions& options);
at::Tensor sinusoids(std::int64_t length, std::int64_t width, const at::TensorOptions& options);

// Tokens that a sequence of a decoder has at most because of its tables: train.sequence_length, or 0 for any number.
std::int64_t longest_of_positions(const ExperimentConfig& config);

class AbsolutePositions {
 public:
  AbsolutePositions() = default;
  // Tables are parameters of `owner`, drawn from the streams of this place: "positions", or "position_cells" and
  // "position_places".
  AbsolutePositions(torch::nn::Module& owner, const ModelConfig& config, const LayerPlace& place, std::int64_t longest,
                    const at::TensorOptions& options);

  // x [batch, n, d], with places [n] of all sequences or [batch * n], one sequence after the other. An InputError for a
  // place beyond the tables.
  at::Tensor added_to(const at::Tensor& x, std::span<const std::int64_t> places) const;

 private:
  PositionKind kind_ = PositionKind::none;
  std::string part_;  // of the model, for messages
  std::int64_t longest_ = 0;
  std::int64_t stride_ = 1;
  at::Tensor table_;   // learned: of positions; factored: of cells
  at::Tensor places_;  // factored: of places in a cell
};

}  // namespace routing
