// bfloat16: the upper half of a float32, rounded to nearest, ties to even. NaN stays NaN.
//
// Threads    single-threaded; callers split
// Overlap    input and output must not overlap, except that round_to_bfloat16 may work in place
#pragma once

#include <cstdint>

namespace routing::kernels {

void to_bfloat16(const float* values, std::int64_t count, std::uint16_t* halves);

void from_bfloat16(const std::uint16_t* halves, std::int64_t count, float* values);

// The nearest bfloat16 of each value, as a float32.
void round_to_bfloat16(const float* values, std::int64_t count, float* rounded);

}  // namespace routing::kernels
