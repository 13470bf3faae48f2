// Wrong usage, for both halves of the program.
#pragma once

#include "routing/core/error.h"

#include <string>
#include <utility>

namespace routing {

// The arguments are wrong. Becomes exit code 2 and, if there is a hint, a second line.
class UsageError : public ConfigError {
 public:
  UsageError(const std::string& message, std::string hint) : ConfigError(message), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

}  // namespace routing
