// How fast the BLAS behind libtorch is, next to oneDNN.
#pragma once

#include "inform/doctor_checks.h"

#include <cstdint>

namespace routing {

// The same fp32 product of two square matrices through libtorch (and so the BLAS) and through oneDNN: a warm-up, then
// `repetitions` of each in turns, so that a busy neighbour slows both; medians.
MatmulRates measure_matmul(std::int64_t size, int repetitions);

}  // namespace routing
