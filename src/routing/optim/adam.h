// Adam and AdamW over named parameters. The formulas: kernels/adam_step.h.
#pragma once

#include "routing/config/experiment.h"
#include "routing/optim/named_parameter.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace routing {

struct AdamOptions {
  OptimizerKind kind = OptimizerKind::adam;  // adam: weight decay in the gradient; adamw: decoupled
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0.0;
};
AdamOptions adam_options(const TrainConfig& config);

class Adam {
 public:
  // Throws an InputError for names or tensors that occur twice and for tensors that are not dense floating point, a
  // ConfigError for options that cannot be.
  Adam(std::vector<NamedParameter> parameters, const AdamOptions& options);

  // One step on the gradients times `gradient_scale` (for clipping and accumulation). The gradients stay as they are.
  //
  // A parameter without a gradient is left alone and so are its moments. The number of steps is one for all parameters
  // (PyTorch counts for each): one that gets its first gradient later starts with smaller steps.
  //
  // Contiguous float32 on the CPU goes through the fused kernel, anything else through tensor operations. Either way
  // the version counter of the value moves, so that caches keyed on it notice. A learning rate or scale that is not
  // finite is refused with an InputError before anything has changed. Gradients are not looked at: a step whose norm
  // is not finite is the caller's to skip.
  void step(double learning_rate, double gradient_scale = 1.0);

  // Drops all gradients: the next backward pass then hands over its own tensors instead of adding to zeros.
  void zero_gradients();

  // Finished steps.
  std::int64_t steps() const { return steps_; }
  const std::vector<NamedParameter>& parameters() const { return parameters_; }

  // "<name>.first_moment" and "<name>.second_moment" for every parameter, and "steps" (int64, no dimensions). The
  // moments are the optimiser's own tensors, not copies: later steps change them.
  std::map<std::string, at::Tensor> state() const;
  // Copies the values. Throws an InputError that names a missing, extra or misshapen tensor, with nothing changed.
  void load_state(const std::map<std::string, at::Tensor>& state);

 private:
  struct Moments {
    at::Tensor first, second;
  };

  std::vector<NamedParameter> parameters_;
  std::vector<Moments> moments_;  // of the parameter at the same place
  AdamOptions options_;
  std::int64_t steps_ = 0;
};

}  // namespace routing
