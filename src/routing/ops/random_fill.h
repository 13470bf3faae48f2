// Tensors filled from named streams: the same values on every machine, whatever torch's own generator did before.
#pragma once

#include "routing/core/random.h"

#include <ATen/ATen.h>

namespace routing {

// In place, in row-major order; meta tensors are left alone.
void fill_uniform(at::Tensor tensor, double low, double high, RandomStream stream);
void fill_normal(at::Tensor tensor, double mean, double deviation, RandomStream stream);

}  // namespace routing
