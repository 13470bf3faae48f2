// Work spread over threads, with results that do not depend on how many there are.
#pragma once

#include <cstdint>
#include <functional>

namespace routing {

// Cores this process may run on (its affinity mask), at least 1.
int available_cores();

// Threads that parallel_for uses; starts at available_cores().
int num_threads();
void set_num_threads(int threads);

// Calls body(first, last) on chunks that cover [begin, end) exactly once. Chunks hold `grain` items (the last may hold
// fewer), whatever the number of threads; which thread runs which chunk is not defined, so a body writes only to what
// belongs to its items. The first exception of a body is thrown again here, after all chunks have ended.
//
// The calling thread works too, with up to num_threads() - 1 others (core/thread_pool.h says how they wait). Any thread
// may call, but the others help one call at a time: a call from inside a body, or while another thread's call goes
// on, runs its chunks by itself. So does a child of fork(), where the other threads do not exist.
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace routing
