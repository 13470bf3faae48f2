#include "serve/request/api_error.h"

#include "routing/core/error.h"

#include <new>

namespace routing {

std::string error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

nlohmann::ordered_json error_json(int status, const std::string& message, const std::string& param) {
  const nlohmann::ordered_json none = nullptr;
  return {{"error",
           {{"message", message},
            {"type", error_type(status)},
            {"param", param.empty() ? none : nlohmann::ordered_json(param)},
            {"code", none}}}};
}

ApiError api_error_of(const std::exception& error) {
  if (const auto* ready = dynamic_cast<const ApiError*>(&error)) return *ready;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {503, "not enough memory for this request; send a shorter one, or ask for fewer choices"};
  }
  const int status = dynamic_cast<const FileError*>(&error) != nullptr ? 503
                     : dynamic_cast<const Error*>(&error) != nullptr   ? 400
                                                                       : 500;
  ApiError result(status, error.what());
  result.names_paths = true;
  return result;
}

}  // namespace routing
