// The gated activation of the authors' later feed-forward layer, element by element:
//
//   gelu(g) = g * sigmoid(2 sqrt(2/pi) (g + 0.044715 g^3))        the tanh form of gelu
//   result  = gelu(gate) * value
//
// Layout     all arrays hold `count` floats; results must not overlap inputs
// Precision  within 4e-7 of the value in double, relative to the larger of 1 and the value (the test states it)
// Threads    parallel_for; an element's bits depend on its inputs alone
#pragma once

#include <cstdint>

namespace routing::kernels {

struct GegluArrays {
  const float* gate = nullptr;
  const float* value = nullptr;
  std::int64_t count = 0;
};

void geglu_forward(const GegluArrays& inputs, float* result);
void geglu_backward(const GegluArrays& inputs, const float* d_result, float* d_gate, float* d_value);

}  // namespace routing::kernels
