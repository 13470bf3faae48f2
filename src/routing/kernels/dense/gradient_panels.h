// Weight gradients by the loops of gradient_tiles.h. For dense_gradient.cpp.
#pragma once

#include "routing/kernels/dense/dense.h"
#include "routing/kernels/dense/gradient_tiles.h"

#include <optional>

namespace routing::kernels {

// The loops for this type at active_isa(). None where oneDNN does better: with tiles of AMX, and on processors without
// AVX2.
std::optional<GradientLoops> gradient_loops(DenseType type);

// weight_gradient of dense.h.
void weight_gradient_by_panels(const GradientInputs& inputs, WeightShape shape, const GradientOptions& options,
                               const WeightGradients& gradients, const GradientLoops& loops);

}  // namespace routing::kernels
