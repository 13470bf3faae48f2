// The JSON of a safetensors header, straight into its fields: one pass, no tree of values that a hostile file could
// blow up. Inside the room only; use safetensors_header.h.
#pragma once

#include "routing/storage/safetensors_header.h"

#include <functional>
#include <string>
#include <string_view>

namespace routing {

// Entries in the order of the text. Checks the text and the types; sizes and ranges are the caller's to check. `fail`
// is called with what is wrong, without path and remedy, and must throw.
SafetensorsHeader parse_safetensors_json(std::string_view text, const std::function<void(const std::string&)>& fail);

}  // namespace routing
