// An experiment as a TOML file: a section a part, such as [train], with its keys.
#pragma once

#include "routing/config/experiment.h"

#include <string>

namespace routing {

// Writes the file's values over those of the configuration; what the file does not name stays. Unknown keys and
// sections, wrong types and wrong syntax are ConfigErrors that begin with origin:line, and nothing is changed.
void apply_toml(ExperimentConfig& config, const std::string& text, const std::string& origin);

// Every key, section by section. Applied to any configuration it gives this one back, to the last bit.
std::string to_toml(const ExperimentConfig& config);

}  // namespace routing
