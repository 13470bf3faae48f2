// k-means on a handful of vectors: where centroids may start.
#pragma once

#include "routing/core/random.h"

#include <cstdint>
#include <vector>

namespace routing {

using Vectors = std::vector<std::vector<float>>;

// Lloyd's algorithm (nearest by distance), started by k-means++: each further start is a vector drawn with a
// probability proportional to its squared distance to the nearest one so far. A cluster that loses all its vectors
// keeps its place; fewer distinct vectors than clusters repeat. At least one vector.
Vectors kmeans(const Vectors& vectors, std::int64_t clusters, std::int64_t iterations, RandomStream stream);

// Sum of products in double; `first` has as many numbers as `second`.
double dot_product(const float* first, const std::vector<float>& second);

}  // namespace routing
