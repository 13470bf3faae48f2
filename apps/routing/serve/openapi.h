// The description of the API that GET /openapi.json serves: openapi.json, as it was built in.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace routing {

// By cmake/embed_files.cmake.
std::vector<std::pair<std::string, std::string>> openapi_files();
inline std::string openapi_text() {
  return openapi_files().front().second;
}

}  // namespace routing
