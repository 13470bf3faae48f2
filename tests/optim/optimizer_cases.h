// What the tests of all optimisers share.
#pragma once

#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/ops/random_fill.h"
#include "routing/optim/optimizer.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

namespace routing {

inline at::Tensor normal_tensor(at::IntArrayRef sizes, std::uint64_t seed, at::ScalarType type = at::kFloat) {
  at::Tensor tensor = at::empty(sizes, type);
  fill_normal(tensor, 0.0, 1.0, RandomStream(seed, "optimiser test"));
  return tensor;
}

inline void set_gradient(const NamedParameter& parameter, const at::Tensor& gradient) {
  parameter.value.mutable_grad() = gradient.to(parameter.value.scalar_type());
}

// What an error of ours says; empty if nothing was thrown.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" does not contain \"" << part << "\"";
}

using OptimizerState = std::map<std::string, at::Tensor>;

// The state with other tensors than the optimiser's own.
inline OptimizerState copied_state(const Optimizer& optimizer) {
  OptimizerState state;
  for (const auto& [name, tensor] : optimizer.state()) state.emplace(name, tensor.clone());
  return state;
}

// Loading this state with one tensor replaced, or removed if it is undefined, is refused: the message names the tensor
// and holds the part.
struct StateRefusals {
  Optimizer& optimizer;
  OptimizerState good;

  void expect(const std::string& name, const at::Tensor& tensor, const std::string& part) const {
    OptimizerState state = good;
    if (tensor.defined()) {
      state[name] = tensor;
    } else {
      state.erase(name);
    }
    const std::string message = error_of([&] { optimizer.load_state(state); });
    expect_contains(message, "\"" + name + "\"");
    expect_contains(message, part);
  }
};

}  // namespace routing
