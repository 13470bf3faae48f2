// The loops of centroid_match.h for AVX-512. Nothing but match_loops_avx512 may leave this file: a
// function shared with other files could be taken from here by the linker and meet a processor that cannot run it.
#include "routing/kernels/centroids/centroid_match_loops.h"

#include <cstdint>

#define ROUTING_VECTOR_BYTES 64
#define ROUTING_ROWS 8

namespace routing::kernels {
namespace {

// clang-format off
#include "routing/kernels/centroids/centroid_match_loops.inl"
// clang-format on

}  // namespace

MatchLoops match_loops_avx512() {
  return kLoops;
}

}  // namespace routing::kernels
