// One step of Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019) over one parameter, in one pass: value,
// gradient and both moments are read once, value and moments written once.
//
// With value p, gradient G, moments m and v, all per element, at the t-th step:
//
//   g = gradient_scale G + l2 p
//   m <- beta1 m + (1 - beta1) g
//   v <- beta2 v + (1 - beta2) g^2
//   p <- (1 - learning_rate decoupled_decay) p
//        - learning_rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//
// Adam has its weight decay in l2, AdamW in decoupled_decay. The order of operations is PyTorch's; results differ from
// it in the last bits, because sqrt(v) is multiplied by 1 / sqrt(1 - beta2^t).
#pragma once

#include <cstdint>

namespace routing::kernels {

struct AdamStep {
  std::int64_t step = 1;  // t, from 1
  double learning_rate = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double l2 = 0.0;
  double decoupled_decay = 0.0;
  double gradient_scale = 1.0;
};

// What is the same for all elements of a step.
struct AdamFactors {
  double gradient_scale = 1.0;
  double l2 = 0.0;
  double beta1 = 0.0, new_first = 0.0;   // new_first = 1 - beta1
  double beta2 = 0.0, new_second = 0.0;  // new_second = 1 - beta2
  double keep = 1.0;                     // 1 - learning_rate decoupled_decay
  double step_size = 0.0;                // learning_rate / (1 - beta1^t)
  double deviation_scale = 1.0;          // 1 / sqrt(1 - beta2^t)
  double epsilon = 0.0;
};
AdamFactors adam_factors(const AdamStep& step);

// Layout     `count` numbers in each array, float32; count >= 0
// Overlap    none of the arrays overlaps another
// Subnormal  moments too small for a normal float32 become 0: left alone they would never get there (0.9 times four
//            times the smallest number rounds to itself) and arithmetic on them is slow on many processors
// Threads    split over parallel_for; every element is computed alone, so their number changes no bit
struct AdamArrays {
  float* value = nullptr;
  const float* gradient = nullptr;
  float* first_moment = nullptr;
  float* second_moment = nullptr;
  std::int64_t count = 0;
};
void adam_step(const AdamArrays& arrays, const AdamFactors& factors);

}  // namespace routing::kernels
