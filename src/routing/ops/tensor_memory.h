// Large CPU tensors from the pool of core/block_pool.h.
#pragma once

namespace routing {

// From now on, tensors of at least 1 MiB that libtorch makes on the CPU come from block_pool() and go back to it;
// those made before are not touched. malloc, which serves the smaller ones and our own lists, gives memory back to the
// system later than it would by itself. For programs, at their start: it holds for the whole process.
void reuse_tensor_memory();

}  // namespace routing
