// The few words that ranks leave for each other outside of their collectives: who came, who lives, who failed.
#pragma once

#include "routing/core/error.h"

#include <chrono>
#include <cstdint>
#include <memory>
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

struct StoreAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0 lets the system choose, where the store is kept
};

// c10d's TCPStore. `keep` starts it in this process (on all addresses of the machine); otherwise the connection waits
// up to `patience` for it, in seconds rounded up. Throws a StoreError that names the address and says what to do.
class TcpRankStore : public RankStore {
 public:
  enum class Role { keep, visit };
  TcpRankStore(const StoreAddress& address, Role role, std::chrono::milliseconds patience);
  ~TcpRankStore() override;

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;

  std::uint16_t port() const;
  // c10d's own object, for what else needs one.
  struct Handle;
  const Handle& handle() const { return *handle_; }

 private:
  std::unique_ptr<Handle> handle_;
};

}  // namespace routing
