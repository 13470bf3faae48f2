// Token ids that lie in memory as bytes or as 32-bit numbers, seen as one thing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace routing {

// A view: what it shows must outlive it.
class TokenView {
 public:
  TokenView() = default;
  TokenView(std::span<const std::uint8_t> ids) : ids_(ids) {}  // NOLINT(google-explicit-constructor)
  TokenView(std::span<const std::int32_t> ids) : ids_(ids) {}  // NOLINT(google-explicit-constructor)

  TokenView(const std::vector<std::uint8_t>& ids) : ids_(std::span(ids)) {}  // NOLINT(google-explicit-constructor)
  TokenView(const std::vector<std::int32_t>& ids) : ids_(std::span(ids)) {}  // NOLINT(google-explicit-constructor)

  std::int64_t size() const {
    return std::visit([](const auto& ids) { return static_cast<std::int64_t>(ids.size()); }, ids_);
  }
  bool empty() const { return size() == 0; }
  std::int64_t operator[](std::int64_t place) const {
    return std::visit([&](const auto& ids) { return static_cast<std::int64_t>(ids[static_cast<std::size_t>(place)]); },
                      ids_);
  }
  // The ids begin … begin + count - 1; they must exist.
  TokenView part(std::int64_t begin, std::int64_t count) const {
    return std::visit(
        [&](const auto& ids) {
          return TokenView(ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
        },
        ids_);
  }
  // Writes as many ids as `out` has room for, from `begin` on; they must exist.
  template <class Number>
  void copy(std::int64_t begin, std::span<Number> out) const {
    std::visit(
        [&](const auto& ids) {
          const auto from = ids.subspan(static_cast<std::size_t>(begin), out.size());
          std::transform(from.begin(), from.end(), out.begin(), [](auto id) { return static_cast<Number>(id); });
        },
        ids_);
  }
  // The memory itself, for checksums.
  std::span<const std::byte> bytes() const {
    return std::visit([](const auto& ids) { return std::as_bytes(ids); }, ids_);
  }

 private:
  std::variant<std::span<const std::uint8_t>, std::span<const std::int32_t>> ids_;
};

}  // namespace routing
