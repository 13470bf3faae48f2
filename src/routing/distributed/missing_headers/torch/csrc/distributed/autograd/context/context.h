// Debian's libtorch-dev 1.13 ships c10d/reducer.hpp without this header of its RPC framework. These are the names that
// the reducer's declaration uses; nothing here is ever called.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>

namespace torch::distributed::autograd {

class DistAutogradContext {
 public:
  using GradCallback = std::function<bool(at::Tensor&)>;
};
using ContextPtr = std::shared_ptr<DistAutogradContext>;

}  // namespace torch::distributed::autograd
