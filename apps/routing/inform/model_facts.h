// What a resolved experiment amounts to: weights, heads, keys and memory; `presets` and `info` print it.
#pragma once

#include "routing/config/experiment.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace routing {

// Keeps the order in which keys were added: related things stay together.
using OrderedJson = nlohmann::ordered_json;

// "1.5 GiB", "37.2 MiB".
std::string bytes_text(std::int64_t bytes);

OrderedJson model_facts(const ExperimentConfig& config);
// The same as a table on standard output.
void print_model_facts(const OrderedJson& facts);

}  // namespace routing
