// The activation x Phi(x), Phi the distribution function of a standard normal number, element by element.
//
// Phi(x) = (1 + erf(x / sqrt 2)) / 2, with erf by Abramowitz and Stegun 7.1.26, within 1.5e-7.
//
// Layout     all arrays hold `count` floats; results must not overlap inputs
// Precision  within 5e-7 of the value in double, relative to the larger of 1 and the value (the test states it)
// Threads    parallel_for; an element's bits depend on its inputs alone
#pragma once

#include <cstdint>

namespace routing::kernels {

void gelu_forward(const float* input, std::int64_t count, float* result);
void gelu_backward(const float* input, const float* d_result, std::int64_t count, float* d_input);

}  // namespace routing::kernels
