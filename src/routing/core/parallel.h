// Work spread over threads, with results that do not depend on how many there are.
#pragma once

#include <cstdint>
#include <functional>

namespace routing {

// What runs the chunks. OpenMP shares libtorch's thread pool and is the default. Plain threads exist for
// ThreadSanitizer, which reports libgomp's own synchronisation as races.
enum class ThreadBackend { openmp, plain_threads };

// Cores this process may run on (its affinity mask), at least 1.
int available_cores();

// Threads that parallel_for uses; starts at available_cores().
int num_threads();
void set_num_threads(int threads);

ThreadBackend thread_backend();
void set_thread_backend(ThreadBackend backend);

// Calls body(first, last) on chunks that cover [begin, end) exactly once. Chunks hold `grain` items (the last may hold
// fewer), whatever the number of threads; which thread runs which chunk is not defined, so a body writes only to what
// belongs to its items. The first exception of a body is thrown again here, after all chunks have ended.
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace routing
