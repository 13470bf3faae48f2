// JSON of what models write, which need not be UTF-8.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace routing {

// On one line; bytes that are not UTF-8 become U+FFFD.
inline std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace routing
