// Adam and AdamW over named parameters. The formulas: kernels/optim/adam_step.h.
#pragma once

#include "routing/config/experiment.h"
#include "routing/optim/optimizer.h"

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
// A ConfigError if train.optimizer is neither adam nor adamw.
AdamOptions adam_options(const TrainConfig& config);

// State: "<name>.first_moment" and "<name>.second_moment" for every parameter, in its own type and shape. A parameter
// that gets its first gradient later than others starts with smaller steps.
class Adam final : public Optimizer {
 public:
  // Throws a ConfigError for options that cannot be, and what Optimizer throws.
  Adam(std::vector<NamedParameter> parameters, const AdamOptions& options);

 private:
  struct Moments {
    at::Tensor first, second;
  };
  void update(const Step& step) override;
  std::map<std::string, at::Tensor> moments() const override;

  std::vector<Moments> moments_;  // of the parameter at the same place
  AdamOptions options_;
};

}  // namespace routing
