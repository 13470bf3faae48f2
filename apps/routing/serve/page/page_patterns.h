// The paper's Figure 1 to play with: what each row of a pattern reads, by the pattern's own plan over made-up tokens
// (lab/figures/pattern_gallery.h).
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>

namespace routing {

inline constexpr std::int64_t kMostPatternTokens = 1024;

// GET /api/patterns: every pattern with the fields that it takes beside n and causal, their defaults and limits.
nlohmann::ordered_json page_patterns();

// POST /api/patterns: {"n", "rows": [{"keys", "groups"}]}; groups[i] is the first group through which keys[i] is read.
// A ConfigError names the field that is wrong, its value and what it may be.
nlohmann::ordered_json page_pattern_rows(const nlohmann::ordered_json& request);

}  // namespace routing
