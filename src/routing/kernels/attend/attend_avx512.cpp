// The loops of fused attention for AVX-512. Nothing but attend_loops_avx512 may leave this file: a function shared with
// other files could be taken from here by the linker and meet a processor that cannot run it.
#include "routing/core/random.h"
#include "routing/kernels/attend/attend_block.h"

#include <cstdint>

#define ROUTING_VECTOR_BYTES 64
#define ROUTING_ROWS 8

namespace routing::kernels {
namespace {

// clang-format off
#include "routing/kernels/attend/attend_vectors.inl"
#include "routing/kernels/attend/attend_lanes.inl"
#include "routing/kernels/attend/attend_loops.inl"
#include "routing/kernels/attend/attend_one.inl"
#include "routing/kernels/attend/attend_backward.inl"
// clang-format on

}  // namespace

AttendLoops attend_loops_avx512() {
  return {kLanes, scratch_size, table_size, pack_table, forward, backward};
}

}  // namespace routing::kernels
