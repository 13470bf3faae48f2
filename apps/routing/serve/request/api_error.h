// What goes wrong with a request, as clients of OpenAI read it.
#pragma once

#include <nlohmann/json.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace routing {

// An answer that is an error. The message says which thing, the value, and what to do.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message, std::string param = {})
      : std::runtime_error(message), status_(status), param_(std::move(param)) {}
  // The same, to be thrown with what its answer says besides.
  ApiError with_retry_after(int seconds) const {
    ApiError error = *this;
    error.retry_after = seconds;
    return error;
  }
  ApiError with_allow(const std::string& methods) const {
    ApiError error = *this;
    error.allow = methods;
    return error;
  }
  int status() const { return status_; }
  const std::string& param() const { return param_; }  // the field that is wrong; empty if it is none
  int retry_after = 0;                                 // seconds, of 429 and 503; 0 for none
  std::string allow = {};                              // of 405: the methods there are
  bool names_paths = false;                            // the message is the library's and may name files

 private:
  int status_;
  std::string param_;
};

// "invalid_request_error", "rate_limit_error", …
std::string error_type(int status);
// {"error": {"message", "type", "param", "code"}}
nlohmann::ordered_json error_json(int status, const std::string& message, const std::string& param = {});

// Any exception as an ApiError: what the library finds wrong with input is 400, what it cannot read 503, all else 500.
ApiError api_error_of(const std::exception& error);

}  // namespace routing
