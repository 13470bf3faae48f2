// What [memory] and eval.memory mean together.
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>

namespace routing {

// Tokens that a layer remembers in evaluation and decoding: eval.memory, or memory.length where that is 0.
std::int64_t evaluation_memory(const ExperimentConfig& config);

// Throws a ConfigError where the keys of [memory] do not fit each other, the heads or the order of the data.
void validate_memory(const ExperimentConfig& config);

}  // namespace routing
