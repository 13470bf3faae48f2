// What heads read at one position, as JSON: of `routing analyze attention --json`, and of the server's page.
#pragma once

#include "analyze/attention_text.h"
#include "lab/heads/head_reading.h"

#include <nlohmann/json.hpp>

#include <vector>

namespace routing {

// [{"layer", "head", "pattern", "clusters", "reads": [{"position", "token", "weight"}]}]; "clusters" of routed heads
// only.
nlohmann::ordered_json readings_json(const std::vector<HeadReading>& readings, const AttentionText& text);

}  // namespace routing
