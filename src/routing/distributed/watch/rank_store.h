// The few words that ranks leave for each other outside of their collectives: who came, who lives, who failed.
#pragma once

#include "routing/core/error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace routing {

// The store cannot be kept or reached, or its connection is gone.
class StoreError : public Error {
 public:
  using Error::Error;
};

class RankStore {
 public:
  virtual ~RankStore() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Nothing where nobody has set it yet.
  virtual std::optional<std::string> get(const std::string& key) = 0;
  // Adds to a number that starts at 0 and returns the sum.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
};

}  // namespace routing
