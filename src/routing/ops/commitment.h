// The commitment loss of routing attention, differentiable.
//
//   mean over real tokens and dimensions of (x - centroid[choice])^2
//
// On the CPU in float32 by kernels/centroids/commitment.h: bits do not depend on the threads, and nothing of the size
// of x is kept beside x itself. Double and other devices by the same formula on tensors.
#pragma once

#include <ATen/ATen.h>

namespace routing {

// vectors [batch, heads, tokens, dim]; choice int32 [batch, heads, tokens] on the CPU, -1 for padding; centroids
// [heads, clusters, dim]. Differentiable once in the vectors, not in the centroids, whose values are those of the call.
// Zero where no token is real. Throws an InputError if the shapes do not fit.
at::Tensor commitment_loss(const at::Tensor& vectors, const at::Tensor& choice, const at::Tensor& centroids);

}  // namespace routing
