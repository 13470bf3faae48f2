// Checksums of bytes: xxHash64 to tell files and states apart, CRC-32C because formats of others ask for it. Neither
// protects against someone who changes bytes on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct XXH64_state_s;

namespace routing {

// xxHash64 of all bytes, as `xxhsum -H64` prints it for seed 0.
std::uint64_t xxhash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);

// The same of bytes that come in pieces; where they are cut makes no difference.
class XxHash64 {
 public:
  explicit XxHash64(std::uint64_t seed = 0);
  void update(std::span<const std::byte> bytes);
  // Of everything so far; more may follow.
  std::uint64_t digest() const;

 private:
  struct Free {
    void operator()(XXH64_state_s* state) const;
  };
  std::unique_ptr<XXH64_state_s, Free> state_;
};

// A hash as people and files see it: 16 hexadecimal digits, with zeros before.
std::string hexadecimal(std::uint64_t value);

// CRC-32C (Castagnoli: polynomial 0x1EDC6F41, bits reflected, ones before and after). Continues from the value of the
// bytes before: crc32c(b, crc32c(a)) is the value of a followed by b.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace routing
