#include "routing/optim/make_optimizer.h"

#include "routing/core/error.h"
#include "routing/optim/adafactor.h"
#include "routing/optim/adam.h"

#include <utility>

namespace routing {

std::unique_ptr<Optimizer> make_optimizer(std::vector<NamedParameter> parameters, const TrainConfig& config) {
  switch (config.optimizer) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return std::make_unique<Adam>(std::move(parameters), adam_options(config));
    case OptimizerKind::adafactor:
    case OptimizerKind::adafactorw:
      return std::make_unique<Adafactor>(std::move(parameters), adafactor_options(config));
  }
  throw ConfigError("train.optimizer: no such kind");
}

}  // namespace routing
