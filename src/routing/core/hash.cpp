#include "routing/core/hash.h"

#include "routing/core/error.h"

#include <array>
#include <new>
#include <string_view>
#include <xxhash.h>

namespace routing {
namespace {

constexpr std::uint32_t kReflectedCastagnoli = 0x82F63B78U;

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t value = 0; value < table.size(); ++value) {
    std::uint32_t rest = value;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1U) ^ ((rest & 1U) != 0 ? kReflectedCastagnoli : 0U);
    table[value] = rest;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kCrcTable = crc_table();

void require_success(XXH_errorcode code) {
  require<Error>(code == XXH_OK, "xxHash64 reports an error on bytes in memory; check the installed libxxhash");
}

}  // namespace

std::uint64_t xxhash64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH64(bytes.data(), bytes.size(), seed);
}

void XxHash64::Free::operator()(XXH64_state_s* state) const {
  XXH64_freeState(state);
}

XxHash64::XxHash64(std::uint64_t seed) : state_(XXH64_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  require_success(XXH64_reset(state_.get(), seed));
}

void XxHash64::update(std::span<const std::byte> bytes) {
  // The library calls a null pointer an error, also for no bytes at all.
  if (!bytes.empty()) require_success(XXH64_update(state_.get(), bytes.data(), bytes.size()));
}

std::uint64_t XxHash64::digest() const {
  return XXH64_digest(state_.get());
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t rest = ~before;
  for (const std::byte byte : bytes)
    rest = (rest >> 8U) ^ kCrcTable[(rest ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
  return ~rest;
}

std::string hexadecimal(std::uint64_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t place = text.size(); place > 0; value >>= 4U) text[--place] = digits[value & 15U];
  return text;
}

}  // namespace routing
