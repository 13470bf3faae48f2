// Between centroid_match.cpp and its loops, which are compiled once per instruction set. What the functions do stands
// in centroid_match.h.
#pragma once

#include "routing/kernels/centroids/centroid_match.h"

#include <cstdint>

namespace routing::kernels {

// The outputs of choose_centroids.
struct ChosenCentroids {
  std::int32_t* argmax = nullptr;
  std::int32_t* nearest = nullptr;
  std::uint32_t* passing = nullptr;
};

struct MatchLoops {
  void (*score)(const CentroidRows& centroids, const TokenBlock& tokens, float* columns, float* scores) = nullptr;
  void (*choose)(const CentroidRows& centroids, const float* scores, const ChosenCentroids& chosen) = nullptr;
  void (*sum)(const CentroidRows& centroids, std::int64_t count, const float* scores, const ScoreSums& sums) = nullptr;
  void (*above)(std::int64_t clusters, const float* scores, const float* limits, std::uint64_t* bits) = nullptr;
  double (*distance)(const CentroidRows& centroids, const TokenBlock& tokens, const std::int32_t* cluster) = nullptr;
  void (*add)(const TokenBlock& tokens, std::int64_t dim, const std::int32_t* cluster, double* sums) = nullptr;
};

MatchLoops match_loops_generic();
MatchLoops match_loops_avx2();
MatchLoops match_loops_avx512();

}  // namespace routing::kernels
