// How much memory does something take at its worst? Read from Linux: resident memory and its peak.
//
// The peak belongs to the process, so it is set back before the work (/proc/self/clear_refs), and memory that malloc
// and the pool of tensors keep though nobody uses it is handed back first. What the work takes is its peak less what
// was resident before its inputs were made.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace routing::bench {

// Of this process, after malloc and block_pool() handed back what they can.
std::int64_t resident_bytes();

// What is allocated at this moment, by malloc and from block_pool().
std::int64_t allocated_bytes();

// The peak of resident memory while the work runs, less `before`; at least 0. Empty where the system cannot set the
// peak back.
std::optional<std::int64_t> peak_bytes_above(std::int64_t before, const std::function<void()>& work);

}  // namespace routing::bench
