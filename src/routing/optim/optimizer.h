// What every optimiser does: steps over named parameters with one learning rate, and a state for checkpoints.
#pragma once

#include "routing/optim/named_parameter.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace routing {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One step on the gradients times `gradient_scale` (for clipping and accumulation). The gradients stay as they are.
  //
  // A parameter without a gradient is left alone and so are its moments. The number of steps is one for all parameters
  // (PyTorch counts for each): one that gets its first gradient later is treated as if it had been there all the time.
  //
  // Contiguous float32 on the CPU goes through fused kernels, anything else through tensor operations. Either way the
  // version counter of the value moves, so that caches keyed on it notice. A learning rate or scale that is not finite
  // is refused with an InputError before anything has changed. Gradients are not looked at: a step whose norm is not
  // finite is the caller's to skip.
  void step(double learning_rate, double gradient_scale = 1.0);

  // Drops all gradients: the next backward pass then hands over its own tensors instead of adding to zeros.
  void zero_gradients();

  // Finished steps.
  std::int64_t steps() const { return steps_; }
  const std::vector<NamedParameter>& parameters() const { return parameters_; }

  // The moments, "<name of the parameter>.<moment>", and "steps" (int64, no dimensions). The moments are the
  // optimiser's own tensors, not copies: later steps change them.
  std::map<std::string, at::Tensor> state() const;
  // Copies the values. Throws an InputError that names a missing, extra or misshapen tensor, with nothing changed.
  void load_state(const std::map<std::string, at::Tensor>& state);

 protected:
  // Throws an InputError for names or tensors that occur twice and for tensors that are not dense floating point.
  explicit Optimizer(std::vector<NamedParameter> parameters);

  // What kinds of optimisers differ in. `gradients` are those of the parameters in order, dense, undefined where there
  // is none; steps() is still the number before this step. Autograd is off.
  struct Step {
    const std::vector<at::Tensor>& gradients;
    double learning_rate = 0.0;
    double gradient_scale = 1.0;
  };
  virtual void update(const Step& step) = 0;
  // All tensors that belong into a checkpoint, by name; the same ones each time.
  virtual std::map<std::string, at::Tensor> moments() const = 0;

 private:
  std::vector<NamedParameter> parameters_;
  std::int64_t steps_ = 0;
};

// Throws a ConfigError unless train.weight_decay is one that can be.
void check_weight_decay(double weight_decay);

}  // namespace routing
