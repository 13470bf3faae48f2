// Adafactor over named parameters, without a first moment. The formulas: kernels/optim/adafactor_step.h.
#pragma once

#include "routing/config/experiment.h"
#include "routing/optim/optimizer.h"

#include <map>
#include <string>
#include <vector>

namespace routing::kernels {
struct AdafactorStep;
}

namespace routing {

struct AdafactorOptions {
  OptimizerKind kind = OptimizerKind::adafactor;  // adafactor: weight decay in the gradient; adafactorw: decoupled
  double decay_exponent = 0.8;
  double update_clip = 1.0;  // 0 means no clipping
  bool relative_step = true;
  double weight_decay = 0.0;
};
// train.beta1, beta2 and epsilon are Adam's and not read. A ConfigError if train.optimizer is no Adafactor.
AdafactorOptions adafactor_options(const TrainConfig& config);

// A parameter with two or more dimensions is a matrix of its last two, or several of them, each with averages of its
// own; any other is a vector.
//
// State: of matrices "<name>.row_moment", the shape without the last dimension, and "<name>.column_moment", the shape
// without the last but one; of vectors "<name>.second_moment", the whole shape. For [rows, columns] that is rows +
// columns numbers where Adam keeps 2 rows columns. They are float64 for float64 parameters, float32 for all others.
//
// Float32 on the CPU goes through the kernel in any layout (a copy goes there and back if the value is not contiguous),
// so the number of threads changes no bit of it. Other types and devices go through torch's own sums.
class Adafactor final : public Optimizer {
 public:
  // Throws a ConfigError for options that cannot be, and what Optimizer throws.
  Adafactor(std::vector<NamedParameter> parameters, const AdafactorOptions& options);

 private:
  struct Moments {
    at::Tensor row, column;  // of matrices
    at::Tensor second;       // of vectors
  };
  static void step_by_kernel(const at::Tensor& value, const at::Tensor& gradient, const Moments& moments,
                             const kernels::AdafactorStep& step);
  static void step_by_tensors(const at::Tensor& value, const at::Tensor& gradient, const Moments& moments,
                              const kernels::AdafactorStep& step);
  void update(const Step& step) override;
  std::map<std::string, at::Tensor> moments() const override;

  std::vector<Moments> moments_;  // of the parameter at the same place
  AdafactorOptions options_;
};

}  // namespace routing
