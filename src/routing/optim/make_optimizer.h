// The optimiser that a configuration asks for.
#pragma once

#include "routing/config/experiment.h"
#include "routing/optim/optimizer.h"

#include <memory>
#include <vector>

namespace routing {

// train.optimizer: adam and adamw (optim/adam.h), adafactor and adafactorw (optim/adafactor.h).
std::unique_ptr<Optimizer> make_optimizer(std::vector<NamedParameter> parameters, const TrainConfig& config);

}  // namespace routing
